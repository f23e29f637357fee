// Proves the device seam: whole requests of every family on a device whose memory the host cannot touch give the
// processor's answers to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "base/log.h"
#include "engine/llm_engine.h"
#include "models/checkpoints_testing.h"
#include "models/tiny_bart_testing.h"
#include "multimodal/registry.h"
#include "ops/norm.h"
#include "rank/checking_device_testing.h"
#include "rank/local_executor.h"

namespace transept {
namespace {

using testing::CheckingDeviceKind;

constexpr uint64_t kPool = 4 << 20;
constexpr const char* kWide = "wide-bart";  // wide enough for int8, as the small checkpoints are not

std::vector<std::string> folders() {
  std::vector<std::string> all = testing::checkpoints();
  all.emplace_back(kWide);
  return all;
}

struct Answer {
  std::vector<std::vector<int32_t>> ids;
  std::vector<double> logprobs;
  std::vector<float> cross_attention, encoder;

  friend bool operator==(const Answer&, const Answer&) = default;
};
using Answers = std::map<std::string, Answer>;

struct Circumstances {
  std::string name;
  std::string backend = "cpu";
  std::optional<WeightFormat> weights = {};
  DType kv = DType::kFloat32;
  uint64_t pool = kPool, swap_space = 0;
  std::optional<int32_t> max_model_len = {};
  PreemptionMode preemption = PreemptionMode::kAuto;
};

class DeviceSeam : public ::testing::TestWithParam<std::string> {
 protected:
  DeviceSeam() {
    set_log_level(LogLevel::kError);
    if (GetParam() == kWide) testing::TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(dir_);
  }

  std::unique_ptr<LLMEngine> make_engine(const Circumstances& setup, const DeviceKind& device) {
    EncoderDecoderModelRunner::Options options;
    options.device = &device;
    options.isa = detect_isa();
    options.num_threads = 2;
    options.attention_backend = setup.backend;
    options.weight_storage = setup.weights;
    options.kv_dtype = setup.kv;
    options.block_size = 4;
    options.max_num_seqs = 8;
    options.max_num_batched_tokens = 32;
    options.max_num_encoder_tokens = 64;
    options.max_model_len = setup.max_model_len;
    options.kv_cache_memory = setup.pool;
    options.swap_space = setup.swap_space;
    options.watermark = 0;
    options.debug_poison = true;
    const std::string folder = GetParam() == kWide ? dir_.path() : testing::checkpoint_path(GetParam());
    config_ = ModelConfig::load(folder).value();
    auto runner = EncoderDecoderModelRunner::create(config_, WeightMap::open(folder).value(), options);
    CHECK(runner.ok(), error_message(runner.status()));
    LLMEngine::Options engine = LLMEngine::Options::of((*runner)->info());
    engine.blocks.watermark = 0;
    engine.blocks.track_freed_blocks = true;
    engine.scheduler.preemption_mode = setup.preemption;
    return std::make_unique<LLMEngine>(engine, std::make_unique<LocalExecutor>(std::move(runner).value()), nullptr,
                                       clock_);
  }

  EncoderDecoderInputs inputs_of(const ModelSpec& spec, int32_t which) const {
    EncoderDecoderInputs inputs;
    inputs.prompt_token_ids = {1, 2, 3 + which};
    if (spec.encoder_takes_ids()) {
      std::vector<int32_t> ids;
      ids.reserve(size_t{5} + 3 * static_cast<size_t>(which));
      for (int32_t i = 0; i < 5 + 3 * which; ++i) ids.push_back((7 * which + 3 * i) % spec.encoder_vocab());
      inputs.set_encoder_ids(std::move(ids));
      return inputs;
    }
    EncoderFeatures features;
    features.num_positions = 8;
    features.shape = {1};
    if (const Json* bins = config_.raw.find("num_mel_bins"); bins != nullptr) {  // a whole window
      features.num_positions = spec.max_encoder_positions;
      features.shape = {bins->as_int(), int64_t{2} * spec.max_encoder_positions};
    } else {
      features.shape = {MultiModalRegistry::create(config_).value()->audio()->max_samples_of(features.num_positions)};
    }
    size_t size = 1;
    for (const int64_t dim : features.shape) size *= static_cast<size_t>(dim);
    for (size_t i = 0; i < size; ++i) {
      features.values.push_back(std::sin(static_cast<float>(i * static_cast<size_t>(1 + which)) * 0.01f));
    }
    inputs.set_encoder_features(std::make_shared<const EncoderFeatures>(std::move(features)));
    return inputs;
  }

  // Greedy, sampled, beams, scores of the prompt, captured attention and encoder rows: all that select and captures do.
  Answers run(LLMEngine& engine) {
    const ModelSpec& spec = engine.executor().info().spec;
    for (int32_t i = 0; i < 6; ++i) {
      SamplingParams params;
      params.max_tokens = 12;
      params.seed = static_cast<uint64_t>(i);
      params.logprobs = 2;
      if (i == 1) params.n = 3, params.temperature = 1, params.top_p = 0.9f;
      if (i == 2) params.num_beams = 3, params.n = 2;
      if (i == 3) params.prompt_logprobs = 2, params.repetition_penalty = 1.5f;
      if (i == 4 && !spec.alignment_heads.empty()) params.capture_cross_attention = true;
      if (i == 5) params.capture_encoder_output = true;
      const Status added = engine.add_request(std::to_string(i), inputs_of(spec, i % 4), params);
      CHECK(added.ok(), error_message(added));
    }
    Answers answers;
    while (engine.has_unfinished_requests()) {
      std::vector<RequestOutput> outputs;
      const Status stepped = engine.step(outputs);
      CHECK(stepped.ok(), error_message(stepped));
      for (const RequestOutput& output : outputs) {
        EXPECT_EQ(output.error, "");
        Answer& answer = answers[output.request_id];
        for (const CompletionOutput& completion : output.outputs) {
          answer.ids.push_back(completion.token_ids);
          answer.logprobs.push_back(completion.cumulative_logprob);
        }
        if (output.cross_attention != nullptr) answer.cross_attention = output.cross_attention->values;
        answer.encoder = output.encoder_output;
      }
    }
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
    return answers;
  }

  testing::TestFolder dir_;
  SteadyClock clock_;
  ModelConfig config_;
};

TEST_P(DeviceSeam, WholeRequestsHaveTheProcessorsBits) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "reference", .backend = "reference"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "float16", .weights = kFloat16Format, .kv = DType::kFloat16},
  };
  for (const Circumstances& setup : setups) {
    SCOPED_TRACE(setup.name);
    const CheckingDeviceKind checking;
    const std::unique_ptr<LLMEngine> there = make_engine(setup, checking), here = make_engine(setup, cpu_device_kind());
    const Answers answers = run(*there);
    EXPECT_EQ(answers, run(*here));
    EXPECT_EQ(answers.size(), 6u);
    EXPECT_EQ(config_.width, here->executor().info().spec.d_model) << "start-up chooses types by config.json's";
    EXPECT_FALSE(answers.at("5").encoder.empty());
    EXPECT_GT(checking.counts().num_ops, 100);
    EXPECT_GT(checking.counts().num_attentions, 20);
    EXPECT_GT(checking.counts().num_selections, 10);
    EXPECT_GT(checking.counts().bytes_in, 1000) << "weights";
    EXPECT_GT(checking.counts().bytes_out, 0) << "what was captured";
  }
}

// Blocks move within the device, to the host and back.
TEST_P(DeviceSeam, BlocksMoveThroughTheDevicesMemory) {
  Circumstances setup{.name = "swaps"};
  const std::unique_ptr<LLMEngine> wide = make_engine(setup, cpu_device_kind());
  const ExecutorInfo& info = wide->executor().info();
  setup.max_model_len = std::min(24, std::max(info.max_encoder_len, info.max_decoder_len));
  // The largest of the requests, and little more.
  const auto cross = static_cast<size_t>(info.spec.find_kv(KvKind::kCross));
  const int64_t most_cross = ceil_div(std::min(info.max_encoder_len, info.spec.encoder_takes_ids() ? 24 : 4096),
                                      info.tables[cross].tokens_per_block);
  const uint64_t block_bytes = kPool / static_cast<uint64_t>(info.num_device_blocks);
  setup.pool = static_cast<uint64_t>(most_cross + 14) * block_bytes;
  setup.swap_space = kPool;
  setup.preemption = PreemptionMode::kSwap;
  const CheckingDeviceKind checking;
  const std::unique_ptr<LLMEngine> there = make_engine(setup, checking), here = make_engine(setup, cpu_device_kind());
  EXPECT_EQ(run(*there), run(*here));
  const ExecutorStats stats = there->executor_stats();
  EXPECT_GT(stats.bytes_copied, 0u);
  if (info.spec.encoder_takes_ids()) {
    EXPECT_GT(stats.bytes_swapped_out, 0u);
  }
  EXPECT_GE(static_cast<uint64_t>(checking.counts().bytes_within), stats.bytes_copied);
  EXPECT_GE(static_cast<uint64_t>(checking.counts().bytes_out), stats.bytes_swapped_out);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DeviceSeam, ::testing::ValuesIn(folders()),
                         [](const auto& test) { return testing::test_name(test.param); });

// What the tests above rely on.
TEST(CheckingDeviceDeathTest, TheLineHoldsFromBothSides) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const CheckingDeviceKind kind;
  ThreadPool threads(1);
  const std::unique_ptr<Device> device = kind.make_device(threads, Isa::kGeneric);
  const DeviceBuffer buffer = kind.memory().allocate(64);
  auto* const floats = reinterpret_cast<float*>(buffer.data());
  volatile float* const touched = floats;
  EXPECT_DEATH(touched[0] = 1, "");
  EXPECT_DEATH((void)(touched[0] + 1), "");

  float read = 0;
  kind.memory().copy_out(&read, floats, sizeof read);
  EXPECT_TRUE(std::isnan(read)) << "new memory is no one's zeros";
  Arena arena(4096, kind.memory());
  Context context{*device, arena};
  std::vector<float> host(4, 1.0f);
  const TensorView there(floats, DType::kFloat32, {1, 4}), here(host.data(), DType::kFloat32, {1, 4});
  EXPECT_DEATH(rms_norm(context, here, floats, 1e-5f, there), "no address of the device");
  EXPECT_DEATH(rms_norm(context, there, host.data(), 1e-5f, there), "no address of the device");
  EXPECT_DEATH(rms_norm(context, there, floats, 1e-5f, TensorView(floats, DType::kFloat32, {1 << 20, 4})), "");
  rms_norm(context, there, floats, 1e-5f, there);
  EXPECT_EQ(kind.counts().num_ops, 1);
}

}  // namespace
}  // namespace transept

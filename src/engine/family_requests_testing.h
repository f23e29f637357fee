// For tests: requests of all kinds to engines over every checkpoint of tests/models, so that two ways to run a model
// can be compared by their answers. Test fixtures derive from FamilyRequests; their parameter is a folder of folders().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "engine/llm_engine.h"
#include "models/checkpoints_testing.h"
#include "models/tiny_bart_testing.h"
#include "multimodal/cogagent_rules.h"
#include "multimodal/mllama_pictures.h"
#include "multimodal/mllama_rules.h"
#include "multimodal/multimodal_testing.h"
#include "multimodal/qwen2_vl_positions.h"
#include "multimodal/registry.h"
#include "rank/local_executor.h"

namespace transept::testing {

inline constexpr uint64_t kPool = 4 << 20;
inline constexpr const char* kWide = "wide-bart";  // wide enough for int8, as the small checkpoints are not

inline std::vector<std::string> folders() {
  std::vector<std::string> all = checkpoints();
  // A window of 1500 positions takes sanitizers minutes a test, and its family has two folders of short ones.
  if (kSanitized) std::erase(all, "whisper-transcribes");
  all.emplace_back(kWide);
  return all;
}

// Makes items those whose rows come from another process, without what they are made of. Returns what there was, with
// its digests.
inline std::vector<EncoderItem> take_elsewhere(std::vector<EncoderItem>& items) {
  transept::make_digests(items, {});
  std::vector<EncoderItem> encoded = items;
  for (size_t i = 0; i < items.size(); ++i) {
    EncoderItem& item = items[i];
    EncoderItem remote(
        RemoteInput{*item.digest, item.num_positions(), static_cast<uint32_t>(i), item.num_last_positions()});
    remote.consumers = item.consumers, remote.splice_offset = item.splice_offset;
    item = std::move(remote);
  }
  return encoded;
}

struct Answer {
  std::vector<std::vector<int32_t>> ids;
  std::vector<double> logprobs;
  std::vector<std::vector<PositionLogprobs>> tops;
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
  std::optional<Isa> isa = {};
  int32_t block_size = 4, max_num_seqs = 8, max_num_batched_tokens = 32;
  SpeculationOptions speculation = {};
  bool slices = false;  // rows that come from elsewhere are taken one item a step, in slices
};

// A pool of the largest of requests of 24 tokens and little more, so that several of them preempt each other. `info`:
// of an engine over kPool in the same circumstances.
inline void make_tight(const ExecutorInfo& info, Circumstances& setup) {
  setup.max_model_len = std::min(24, std::max(info.max_encoder_len, info.max_decoder_len));
  const bool crosses = info.spec.find_kv(KvKind::kCross) >= 0;
  const auto of_items = static_cast<size_t>(info.spec.find_kv(crosses ? KvKind::kCross : KvKind::kEncoderRows));
  const int64_t most_cross = ceil_div(std::min(info.max_encoder_len, info.spec.encoder_takes_ids() ? 24 : 4096),
                                      info.tables[of_items].tokens_per_block);
  const uint64_t block_bytes = kPool / static_cast<uint64_t>(info.num_device_blocks);
  // Of a family that splices rows as well: their table, and longer prompts.
  const int64_t beside = crosses && info.spec.find_kv(KvKind::kEncoderRows) >= 0 ? 12 : 0;
  setup.pool = static_cast<uint64_t>(most_cross + 14 + beside) * block_bytes;
  setup.swap_space = kPool;
}

class FamilyRequests : public ::testing::TestWithParam<std::string> {
 protected:
  FamilyRequests() {
    set_log_level(LogLevel::kError);
    if (GetParam() == kWide) TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(dir_);
    config_ = ModelConfig::load(GetParam() == kWide ? dir_.path() : checkpoint_path(GetParam())).value();
  }

  ModelRunnerOptions options_of(const Circumstances& setup) const {
    ModelRunnerOptions options;
    options.isa = setup.isa.value_or(detect_isa());
    options.num_threads = 2;
    options.attention_backend = setup.backend;
    options.weight_storage = setup.weights;
    options.kv_dtype = setup.kv;
    options.block_size = setup.block_size;
    options.max_num_seqs = setup.max_num_seqs;
    options.max_num_batched_tokens = setup.max_num_batched_tokens;
    options.max_num_encoder_tokens = 64;
    options.max_model_len = setup.max_model_len;
    options.kv_cache_memory = setup.pool;
    options.swap_space = setup.swap_space;
    options.watermark = 0;
    options.debug_poison = true;
    return options;
  }

  std::unique_ptr<LLMEngine> make_engine(const Circumstances& setup, std::unique_ptr<Executor> executor) const {
    LLMEngine::Options engine = LLMEngine::Options::of(executor->info());
    engine.blocks.watermark = 0;
    engine.blocks.track_freed_blocks = true;
    engine.scheduler.preemption_mode = setup.preemption;
    engine.speculation = setup.speculation;
    return std::make_unique<LLMEngine>(engine, std::move(executor), nullptr, clock_);
  }

  // Over the whole model, in this process.
  std::unique_ptr<LLMEngine> make_engine(const Circumstances& setup,
                                         const DeviceKind& device = cpu_device_kind()) const {
    ModelRunnerOptions options = options_of(setup);
    options.device = &device;
    auto runner = EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options);
    CHECK(runner.ok(), error_message(runner.status()));
    return make_engine(setup, std::make_unique<LocalExecutor>(std::move(runner).value()));
  }

  // The reference's attention takes seconds for each layer of inputs beyond these.
  bool is_long_for(const Circumstances& setup) const {
    constexpr int32_t kLongest = 512;
    const Json* positions = config_.raw.find("max_source_positions");
    return setup.backend == "reference" && positions != nullptr && positions->as_int() > kLongest &&
           config_.raw.find("num_mel_bins") != nullptr;
  }

  // What the family's processor makes of a picture of seeded pixels.
  MultiModalRegistry::Items picture(int32_t which) const {
    constexpr int32_t kWidth = 9, kHeight = 7;
    std::string pixels;
    for (int32_t i = 0; i < 3 * kWidth * kHeight; ++i) pixels.push_back(static_cast<char>(i * (5 + 2 * which) % 256));
    Json item = Json::object(), media = Json::object();
    item.set("rgb", base64_of(pixels));
    item.set("width", kWidth);
    item.set("height", kHeight);
    media.set("image", std::move(item));
    return MultiModalRegistry::create(config_).value()->process(media, {}).value();
  }

  // The picture stands behind the first token, at positions of its own.
  static void splice_picture(EncoderDecoderInputs& inputs) {
    EncoderItem& item = inputs.items.front();
    const std::vector<int32_t>& grid = item.features->extras;
    const int32_t rows = grid[1] / 2, columns = grid[2] / 2;  // of merged patches
    CHECK(rows * columns == item.num_positions());
    item.consumers = Consumers::kSplice;
    item.splice_offset = 1;
    inputs.prompt_token_ids.insert(inputs.prompt_token_ids.begin() + 1, static_cast<size_t>(rows) * columns, 0);
    const PlacedPicture place{1, rows, columns};
    inputs.layout = qwen2_vl_layout(static_cast<int32_t>(inputs.prompt_token_ids.size()), {&place, 1});
  }

  // The picture stands at a token of the prompt, before which others see all of its rows, or strictly none.
  void cross_picture(int32_t which, EncoderDecoderInputs& inputs) const {
    const EncoderItem& item = inputs.items.front();
    const MllamaPlace place{(which + 1) % 3, item.num_positions() - item.num_last_positions()};
    const bool is_strict = *read_mllama_strict_mask(config_);
    inputs.layout.ranges = mllama_ranges({&place, 1}, is_strict ? 0 : num_cross_positions(inputs.items));
  }

  // Both forms of the picture: the small one behind the first token.
  static void place_forms(EncoderDecoderInputs& inputs) {
    EncoderItem &small = inputs.items[0], &large = inputs.items[1];
    small.consumers = Consumers::kSplice;
    small.splice_offset = 1;
    const int32_t rows = small.num_positions();
    inputs.prompt_token_ids.insert(inputs.prompt_token_ids.begin() + 1, static_cast<size_t>(rows), 0);
    inputs.layout =
        cogagent_layout(static_cast<int32_t>(inputs.prompt_token_ids.size()), 1, rows, large.num_positions());
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
    if (spec.modalities.front() == "image") {
      inputs.set_encoder_features(picture(which));
      if (spec.splices_alone()) splice_picture(inputs);
      if (spec.family == "mllama") cross_picture(which, inputs);
      if (spec.family == "cogagent") place_forms(inputs);
      // A picture among ids; and one alone, whose rows are crossed as they are.
      if (!spec.encoder_takes_media_among_ids() || which == 3) return inputs;
      EncoderItem& item = inputs.items.front();
      item.token_ids.assign(static_cast<size_t>(item.features->num_positions), spec.media_token_id);
      for (int32_t i = 0; i < 2 + 2 * which; ++i) item.token_ids.push_back((7 * which + 3 * i) % spec.vocab_size);
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

  // What the engine gets instead of these inputs, and what happens between its steps: for tests that encode elsewhere.
  virtual EncoderDecoderInputs place(const std::string&, EncoderDecoderInputs inputs) { return inputs; }
  virtual void before_step() {}
  virtual Status add(LLMEngine& engine, const std::string& id, EncoderDecoderInputs inputs,
                     const SamplingParams& params) {
    return engine.add_request(id, std::move(inputs), params);
  }
  // What a request brings besides.
  virtual void complete(const std::string&, SamplingParams&) {}

  // Greedy, sampled, beams, scores of the prompt, captured attention and encoder rows: all that select and captures do.
  Answers run(LLMEngine& engine) {
    const ModelSpec& spec = engine.executor().info().spec;
    std::map<std::string, int64_t> num_crossed_values;
    for (int32_t i = 0; i < 6; ++i) {
      SamplingParams params;
      EncoderDecoderInputs inputs = inputs_of(spec, i % 4);
      const auto num_prompt = static_cast<int32_t>(inputs.prompt_token_ids.size());
      params.max_tokens = std::min(12, spec.max_decoder_positions - num_prompt);
      params.seed = static_cast<uint64_t>(i);
      params.logprobs = 2;
      if (i == 1) params.n = 3, params.temperature = 1, params.top_p = 0.9f;
      if (i == 2) params.num_beams = 3, params.n = 2;
      if (i == 3) params.prompt_logprobs = 2, params.repetition_penalty = 1.5f;
      if (i == 4 && !spec.alignment_heads.empty()) params.capture_cross_attention = true;
      if (i == 5) params.capture_encoder_output = true;
      const std::string id = std::to_string(i);
      num_crossed_values[id] = int64_t{num_cross_positions(inputs.items)} * spec.width_of(Consumers::kCross);
      complete(id, params);
      const Status added = add(engine, id, place(id, std::move(inputs)), params);
      CHECK(added.ok(), error_message(added));
    }
    Answers answers;
    while (engine.has_unfinished_requests()) {
      std::vector<RequestOutput> outputs;
      before_step();
      const Status stepped = engine.step(outputs);
      CHECK(stepped.ok(), error_message(stepped));
      for (const RequestOutput& output : outputs) {
        if (!output.error.empty()) errors_[output.request_id] = output.error;
        EXPECT_TRUE(output.error.empty() || expects_errors_) << output.error;
        Answer& answer = answers[output.request_id];
        for (const CompletionOutput& completion : output.outputs) {
          answer.ids.push_back(completion.token_ids);
          answer.logprobs.push_back(completion.cumulative_logprob);
          if (completion.logprobs.has_value()) answer.tops.push_back(*completion.logprobs);
        }
        if (output.cross_attention != nullptr) answer.cross_attention = output.cross_attention->values;
        answer.encoder = output.encoder_output;
        if (!drops_spliced_rows_) continue;  // those that are crossed stand behind them
        const int64_t num_kept = std::min(std::ssize(answer.encoder), num_crossed_values.at(output.request_id));
        answer.encoder.erase(answer.encoder.begin(), answer.encoder.end() - num_kept);
      }
    }
    EXPECT_EQ(engine.executor_stats().num_arena_overflows, 0);
    return answers;
  }

  // For tests that encode elsewhere: spliced rows that come from there are read where they lie, and are not captured,
  // so answers are without them wherever they were made.
  bool drops_spliced_rows_ = false;
  bool expects_errors_ = false;
  std::map<std::string, std::string> errors_;  // of requests of run()
  TestFolder dir_;
  SteadyClock clock_;
  ModelConfig config_;
};

}  // namespace transept::testing

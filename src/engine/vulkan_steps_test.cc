// Steps of an engine on a software Vulkan device are recorded once for each number of rows, whatever the lengths of
// their requests are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/all_cases_testing.h"
#include "base/log.h"
#include "base/sanitized_testing.h"
#include "engine/llm_engine.h"
#include "engine/opened_vulkan_testing.h"
#include "models/noise_whisper_testing.h"
#include "models/tiny_bart_testing.h"
#include "models/tiny_t5_testing.h"
#include "rank/local_executor.h"

namespace transept {
namespace {

using testing::OpenedVulkan;
using testing::TinyBart;

class VulkanSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kError);
    if (kSanitized) GTEST_SKIP() << "device_vulkan's tests have the device";
    if (opened().kind == nullptr) GTEST_SKIP() << "no software device: " << opened().why;
    TinyBart{.positions = 96}.write(dir_);
  }
  void TearDown() override {
    if (IsSkipped()) return;  // nothing has opened it
    for (const std::string& problem : opened().take_problems()) ADD_FAILURE() << problem;
  }

  static OpenedVulkan& opened() {
    static OpenedVulkan opened;
    return opened;
  }

  std::unique_ptr<LLMEngine> make_engine(const DeviceKind& device, int32_t max_num_seqs) {
    return make_engine(device, max_num_seqs, ModelConfig::load(dir_.path()).value());
  }
  std::unique_ptr<LLMEngine> make_engine(const DeviceKind& device, int32_t max_num_seqs, const ModelConfig& config,
                                         std::optional<WeightFormat> weights = std::nullopt) {
    ModelRunnerOptions options;
    options.isa = detect_isa();
    options.num_threads = 1;
    options.block_size = 4;
    options.max_num_seqs = max_num_seqs;
    options.max_num_batched_tokens = max_num_seqs;
    options.max_num_encoder_tokens = 128;
    options.kv_cache_memory = 4 << 20;
    options.debug_poison = true;
    options.device = &device;
    options.weight_storage = weights;
    auto runner = EncoderDecoderModelRunner::create(config, WeightMap::open(config.path).value(), options);
    CHECK(runner.ok(), error_message(runner.status()));
    auto executor = std::make_unique<LocalExecutor>(std::move(runner).value());
    return std::make_unique<LLMEngine>(LLMEngine::Options::of(executor->info()), std::move(executor), nullptr, clock_);
  }

  // One token of prompt, so that every step has a row a sequence.
  void add(LLMEngine& engine) {
    EncoderDecoderInputs inputs;
    inputs.prompt_token_ids = {2};
    inputs.set_encoder_ids(std::vector<int32_t>(1 + rng_() % 60, static_cast<int32_t>(3 + rng_() % 30)));
    SamplingParams params;
    params.max_tokens = static_cast<int32_t>(1 + rng_() % 90);
    params.ignore_eos = true;
    CHECK(engine.add_request(std::to_string(num_added_++), std::move(inputs), params).ok());
  }

  // With `num_rows` or more sequences in each step, until there were so many.
  void run(LLMEngine& engine, size_t num_rows, int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      while (engine.num_unfinished_requests() < num_rows) add(engine);
      std::vector<RequestOutput> outputs;
      CHECK(engine.step(outputs).ok());
      for (const RequestOutput& output : outputs) answers_[output.request_id] = output.outputs[0].token_ids;
    }
  }

  testing::TestFolder dir_;
  SteadyClock clock_;
  std::mt19937 rng_{1};
  int num_added_ = 0;
  std::map<std::string, std::vector<int32_t>> answers_;
};

// A quarter of them without takes_all_cases().
TEST_F(VulkanSteps, AThousandOfMixedLengthsInOneBucketAreReplayed) {
  const size_t num_steps = testing::takes_all_cases() ? 1000 : 250;
  const std::unique_ptr<LLMEngine> engine = make_engine(*opened().kind, 8);
  run(*engine, 6, 20);
  const DeviceMemory& memory = opened().kind->memory();
  const StepCounts before = engine->executor_stats().steps;
  const uint64_t free = memory.free_bytes();
  for (size_t step = 0; step < num_steps; step += 10) run(*engine, 5 + rng_() % 4, 10);
  const StepCounts after = engine->executor_stats().steps;
  EXPECT_EQ(after.num_recorded, before.num_recorded);
  EXPECT_EQ(after.num_replayed, before.num_replayed + num_steps);
  EXPECT_EQ(memory.free_bytes(), free);
  EXPECT_EQ(engine->executor_stats().num_arena_overflows, 0);
  EXPECT_GT(answers_.size(), num_steps / 10);
}

// As many rows as come, on the processor and on the device: rows that fill steps change no token, and poisoned blocks
// no number.
TEST_F(VulkanSteps, EveryNumberOfRowsHasTheProcessorsTokens) {
  std::map<std::string, std::vector<int32_t>> answers[2];
  StepCounts counts;
  for (const bool is_there : {false, true}) {
    const std::unique_ptr<LLMEngine> engine = make_engine(is_there ? *opened().kind : cpu_device_kind(), 70);
    rng_.seed(2);
    num_added_ = 0;
    answers_.clear();
    for (const size_t num_rows : {1, 2, 3, 5, 9, 17, 33, 65, 70}) run(*engine, num_rows, 8);
    while (engine->has_unfinished_requests()) run(*engine, 0, 1);
    answers[is_there] = answers_;
    counts = engine->executor_stats().steps;
  }
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_GT(answers[0].size(), 70u);
  EXPECT_GT(counts.num_replayed, 5 * counts.num_recorded);
}

// Of any kind and length; some are aborted before, while and after they are encoded. So many, or as many as
// TRANSEPT_TEST_REQUESTS says (10,000 of `./dev test --slow`).
TEST_F(VulkanSteps, MemoryAfterManyRequestsIsThatAfterAHundred) {
  const std::unique_ptr<LLMEngine> engine = make_engine(*opened().kind, 32);
  const DeviceMemory& memory = opened().kind->memory();
  const char* const wanted = std::getenv("TRANSEPT_TEST_REQUESTS");
  const int num_requests = wanted == nullptr ? 300 : std::atoi(wanted);
  int num_aborted = 0;
  uint64_t free = 0;
  std::vector<std::string> alive;
  const auto finish = [&] {
    std::vector<RequestOutput> outputs;
    while (engine->has_unfinished_requests()) ASSERT_TRUE(engine->step(outputs).ok());
    alive.clear();
  };
  for (int i = 0; i < num_requests; ++i) {
    EncoderDecoderInputs inputs;
    inputs.prompt_token_ids.assign(1 + rng_() % 3, 2);
    inputs.set_encoder_ids(std::vector<int32_t>(1 + rng_() % 60, static_cast<int32_t>(3 + rng_() % 30)));
    SamplingParams params;
    params.max_tokens = static_cast<int32_t>(1 + rng_() % 12);
    params.num_beams = rng_() % 6 == 0 ? 3 : 1;
    if (params.num_beams == 1 && rng_() % 3 == 0) params.temperature = 1, params.seed = i;
    if (rng_() % 4 == 0) params.logprobs = 2;
    alive.push_back(std::to_string(i));
    ASSERT_TRUE(engine->add_request(alive.back(), std::move(inputs), params).ok());
    std::vector<RequestOutput> outputs;
    if (rng_() % 3 == 0) {
      ASSERT_TRUE(engine->step(outputs).ok());
    }
    while (engine->num_unfinished_requests() > 40) ASSERT_TRUE(engine->step(outputs).ok());
    const size_t age = 1 + rng_() % std::min<size_t>(alive.size(), 30);  // the oldest ones have ended
    if (rng_() % 4 == 0) num_aborted += engine->abort_request(alive[alive.size() - age]).ok() ? 1 : 0;
    if (i != 99) continue;
    finish();
    free = memory.free_bytes();
  }
  finish();
  EXPECT_EQ(memory.free_bytes(), free);
  EXPECT_GT(num_aborted, num_requests / 50);
  EXPECT_EQ(engine->executor_stats().num_arena_overflows, 0);
  EXPECT_GT(free, 0u);
}

// What the host reads of a row: of 64 that are greedy, and of the rows of beams that list five log-probabilities.
TEST_F(VulkanSteps, FewBytesOfARowAreReadBack) {
  for (const bool is_beams : {false, true}) {
    const std::unique_ptr<LLMEngine> engine = make_engine(*opened().kind, 64);
    const int32_t num_beams = is_beams ? 5 : 1, num_requests = is_beams ? 3 : 64;
    for (int32_t i = 0; i < num_requests; ++i) {
      EncoderDecoderInputs inputs;
      inputs.prompt_token_ids = {2};
      inputs.set_encoder_ids({4, 5, 6, 7});
      SamplingParams params;
      params.max_tokens = 12;
      params.ignore_eos = true;
      params.num_beams = num_beams;
      if (is_beams) params.logprobs = 5;
      ASSERT_TRUE(engine->add_request(std::to_string(i), std::move(inputs), params).ok());
    }
    std::vector<RequestOutput> outputs;
    ASSERT_TRUE(engine->step(outputs).ok());
    const int64_t before = engine->executor_stats().steps.read_back_bytes;
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(engine->step(outputs).ok());
    const int64_t bytes = engine->executor_stats().steps.read_back_bytes - before;
    const int64_t a_row = bytes / 8 / (num_requests * num_beams);
    EXPECT_GT(a_row, 0);
    EXPECT_LE(a_row, is_beams ? 256 : 16);
  }
}

// What the host writes for a step is lists of its rows, whatever the model's width, types of weights and layers: rows
// of tables of embeddings are found on the device.
TEST_F(VulkanSteps, WhatIsUploadedDoesNotDependOnTheModelsSize) {
  constexpr int32_t kRows = 16;
  std::map<int64_t, int64_t> bytes_of_width;
  for (const int64_t width : {16, 256}) {
    testing::TestFolder folder;
    TinyBart{.d_model = width, .heads = width / 8, .decoder_layers = width == 16 ? 1 : 3, .positions = 96}.write(
        folder);
    const std::unique_ptr<LLMEngine> engine =
        make_engine(*opened().kind, kRows, ModelConfig::load(folder.path()).value());
    for (int32_t i = 0; i < kRows; ++i) {
      EncoderDecoderInputs inputs;
      inputs.prompt_token_ids = {2};
      inputs.set_encoder_ids({4, 5, 6, 7});
      SamplingParams params;
      params.max_tokens = 12;
      params.ignore_eos = true;
      ASSERT_TRUE(engine->add_request(std::to_string(i), std::move(inputs), params).ok());
    }
    std::vector<RequestOutput> outputs;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(engine->step(outputs).ok());
    const StepCounts before = engine->executor_stats().steps;
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(engine->step(outputs).ok());
    const StepCounts after = engine->executor_stats().steps;
    EXPECT_EQ(after.num_replayed, before.num_replayed + 8);
    EXPECT_EQ(after.num_recorded, before.num_recorded);
    bytes_of_width[width] = after.uploaded_bytes - before.uploaded_bytes;
  }
  EXPECT_LE(bytes_of_width[256], bytes_of_width[16]) << "of three layers and of one, too";
  EXPECT_GT(bytes_of_width[16], 8 * kRows * 4) << "ids";
  EXPECT_LT(bytes_of_width[16], 8 * kRows * 160) << "two lists of attention, and few words more";
}

void write_whisper(const testing::TestFolder& folder, int64_t num_layers) {
  testing::NoiseWhisper{.width = 256,
                        .heads = 4,
                        .encoder_layers = 1,
                        .decoder_layers = num_layers,
                        .positions = 8,
                        .target_positions = 16}
      .write(folder);
}

// Kernels of a step of one row and of many, a decoder layer: what a model of three layers has more than one of one.
class VulkanDispatches : public VulkanSteps {
 protected:
  // Of the last step of so many rows: dispatches.
  int64_t dispatches(LLMEngine& engine, const EncoderDecoderInputs& inputs, int32_t num_rows) {
    SamplingParams params;
    params.max_tokens = 6;
    params.ignore_eos = true;
    for (int32_t i = 0; i < num_rows; ++i) {
      const std::string id = std::to_string(num_rows) + "-" + std::to_string(i);
      CHECK(engine.add_request(id, EncoderDecoderInputs(inputs), params).ok());
    }
    StepCounts before, after;
    std::vector<RequestOutput> outputs;
    for (int step = 0; step < 5; ++step) {
      before = after;
      CHECK(engine.step(outputs).ok());
      after = engine.executor_stats().steps;
    }
    EXPECT_EQ(after.num_recorded, before.num_recorded);
    EXPECT_EQ(after.num_replayed, before.num_replayed + 1);
    while (engine.has_unfinished_requests()) CHECK(engine.step(outputs).ok());
    return after.num_dispatches - before.num_dispatches;
  }

  template <typename Write>
  void expect_few(const EncoderDecoderInputs& inputs, const Write& write, int64_t count = 6,
                  std::optional<WeightFormat> weights = std::nullopt) {
    const int32_t most_rows = testing::takes_all_cases() ? 64 : 16;
    std::map<int32_t, std::vector<int64_t>> counts;  // of a number of rows: with one layer, and with three
    for (const int num_layers : {1, 3}) {
      testing::TestFolder folder;
      write(folder, num_layers);
      const std::unique_ptr<LLMEngine> engine =
          make_engine(*opened().kind, most_rows, ModelConfig::load(folder.path()).value(), weights);
      for (const int32_t num_rows : {1, most_rows}) {
        counts[num_rows].push_back(dispatches(*engine, inputs, num_rows));
      }
    }
    for (const auto& [num_rows, of_layers] : counts) {
      EXPECT_EQ(of_layers[1] - of_layers[0], 2 * count) << num_rows << " rows: " << of_layers[0] << " with one layer";
    }
  }
};

// Behind each product the norm and the rounding of its rows; what attention gives is rounded behind it.
TEST_F(VulkanDispatches, ADecoderLayerOfInt8IsEight) {
  EncoderDecoderInputs text, audio;
  text.prompt_token_ids = {2};
  text.set_encoder_ids({4, 5, 6, 7});
  const auto write_bart = [](const testing::TestFolder& folder, int64_t num_layers) {
    TinyBart{.d_model = 256, .heads = 4, .ffn = 320, .decoder_layers = num_layers}.write(folder);
  };
  expect_few(text, write_bart, 8, kInt8Format);
  const auto write_t5 = [](const testing::TestFolder& folder, int64_t num_layers) {
    testing::TinyT5 t5;
    t5.d_model = 256, t5.d_kv = 64, t5.num_heads = 4, t5.d_ff = 320, t5.num_decoder_layers = num_layers;
    t5.gated = true;
    t5.write(folder);
  };
  expect_few(text, write_t5, 8, kInt8Format);
  audio.prompt_token_ids = {2};
  audio.set_encoder_features(testing::seeded_features({80, 16}, 0, 1));
  expect_few(audio, write_whisper, 8, kInt8Format);
}

TEST_F(VulkanDispatches, ADecoderLayerIsSix) {
  EncoderDecoderInputs text, audio;
  text.prompt_token_ids = {2};
  text.set_encoder_ids({4, 5, 6, 7});
  expect_few(text, [](const testing::TestFolder& folder, int64_t num_layers) {
    TinyBart{.d_model = 256, .heads = 4, .ffn = 48, .decoder_layers = num_layers}.write(folder);
  });
  for (const bool gated : {false, true}) {
    SCOPED_TRACE(gated);
    expect_few(text, [&](const testing::TestFolder& folder, int64_t num_layers) {
      testing::TinyT5 t5;
      t5.d_model = 48, t5.d_kv = 64, t5.num_heads = 4, t5.d_ff = 64, t5.num_decoder_layers = num_layers;
      t5.gated = gated;
      t5.write(folder);
    });
  }
  audio.prompt_token_ids = {2};
  audio.set_encoder_features(testing::seeded_features({80, 16}, 0, 1));
  expect_few(audio, write_whisper);
}

}  // namespace
}  // namespace transept

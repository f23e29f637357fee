// Steps of an engine on a software Vulkan device are recorded once for each number of rows, whatever the lengths of
// their requests are.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/log.h"
#include "base/sanitized_testing.h"
#include "engine/llm_engine.h"
#include "engine/opened_vulkan_testing.h"
#include "models/tiny_bart_testing.h"
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
    const ModelConfig config = ModelConfig::load(dir_.path()).value();
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

TEST_F(VulkanSteps, AThousandOfMixedLengthsInOneBucketAreReplayed) {
  const std::unique_ptr<LLMEngine> engine = make_engine(*opened().kind, 8);
  run(*engine, 6, 20);
  const DeviceMemory& memory = opened().kind->memory();
  const StepCounts before = engine->executor_stats().steps;
  const uint64_t free = memory.free_bytes();
  for (int part = 0; part < 100; ++part) run(*engine, 5 + rng_() % 4, 10);
  const StepCounts after = engine->executor_stats().steps;
  EXPECT_EQ(after.num_recorded, before.num_recorded);
  EXPECT_EQ(after.num_replayed, before.num_replayed + 1000);
  EXPECT_EQ(memory.free_bytes(), free);
  EXPECT_EQ(engine->executor_stats().num_arena_overflows, 0);
  EXPECT_GT(answers_.size(), 100u);
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

}  // namespace
}  // namespace transept

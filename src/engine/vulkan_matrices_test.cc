// Whole requests of every family with products by a Vulkan device's matrix units give the processor's tokens, in any
// company with the same bits. Mesa's software device has matrices from 26.1 on: ./dev test --devices says by
// TRANSEPT_TEST_MATRICES that there must be one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"
#include "engine/opened_vulkan_testing.h"
#include "models/noise_whisper_testing.h"

namespace transept {
namespace {

using testing::Answer;
using testing::Answers;
using testing::Circumstances;
using testing::OpenedVulkan;

// The process's own. They end with the tests: the objects of newer layers end before those of here.
struct Devices final : ::testing::Environment {
  void TearDown() override {
    with.reset();
    without.reset();
  }
  std::unique_ptr<OpenedVulkan> with, without;
};
Devices* const devices = static_cast<Devices*>(::testing::AddGlobalTestEnvironment(new Devices));

OpenedVulkan& opened() {
  if (devices->with == nullptr) devices->with = std::make_unique<OpenedVulkan>(true, "on");
  return *devices->with;
}
OpenedVulkan& opened_without() {
  if (devices->without == nullptr) devices->without = std::make_unique<OpenedVulkan>();
  return *devices->without;
}

class VulkanMatrixModels : public testing::FamilyRequests {
 protected:
  void SetUp() override {
    ASSERT_NE(opened().kind, nullptr) << opened().why;
    ASSERT_NE(opened_without().kind, nullptr) << opened_without().why;
  }
  void TearDown() override {
    for (const std::string& problem : opened().take_problems()) ADD_FAILURE() << problem;
  }

  static Circumstances of(const WeightFormat& weights, DType kv = DType::kFloat32) {
    return {.name = weight_format_name(weights), .backend = "auto", .weights = weights, .kv = kv};
  }
  static void expect_alike(const Answers& there, const Answers& here) {
    ASSERT_EQ(there.size(), here.size());
    for (const auto& [id, answer] : here) {
      SCOPED_TRACE(id);
      const Answer& other = there.at(id);
      ASSERT_EQ(other.ids, answer.ids);
      for (size_t i = 0; i < answer.logprobs.size(); ++i) {
        EXPECT_NEAR(other.logprobs[i], answer.logprobs[i], 1e-4 * static_cast<double>(answer.ids[i].size() + 1));
      }
    }
  }
};

TEST_P(VulkanMatrixModels, RequestsHaveTheProcessorsTokens) {
  const Circumstances setup = of(kFloat16Format);
  const Answers there = run(*make_engine(setup, *opened().kind));
  expect_alike(there, run(*make_engine(setup)));
  EXPECT_NE(there, run(*make_engine(setup, *opened_without().kind))) << "by shader cores";
}

// Not the processor's, whose inputs are bfloat16 then, too, where it multiplies with them.
TEST_P(VulkanMatrixModels, BFloat16GivesTheTokensOfShaderCores) {
  const Circumstances setup = of(kBFloat16Format);
  const Answers there = run(*make_engine(setup, *opened().kind)),
                cores = run(*make_engine(setup, *opened_without().kind));
  expect_alike(there, cores);
  EXPECT_NE(there, cores);
}

TEST_P(VulkanMatrixModels, Int8HasTheBitsOfShaderCores) {
  if (GetParam() != testing::kWide) return;  // others are too narrow for int8
  for (const DType kv : {DType::kFloat32, DType::kInt8}) {
    const Circumstances setup = of(kInt8Format, kv);
    EXPECT_EQ(run(*make_engine(setup, *opened().kind)), run(*make_engine(setup, *opened_without().kind)));
  }
}

// In other company, other blocks and other steps a request has the same bits.
TEST_P(VulkanMatrixModels, BitsDependOnNoCompany) {
  Circumstances wide = of(kFloat16Format), narrow = wide;
  narrow.max_num_seqs = 3;
  narrow.max_num_batched_tokens = 5;
  narrow.block_size = 3;
  const std::unique_ptr<LLMEngine> together = make_engine(wide, *opened().kind),
                                   apart = make_engine(narrow, *opened().kind);
  EXPECT_EQ(run(*together), run(*apart));
}

std::vector<std::string> folders_with_matrices() {
  if (kSanitized || std::getenv("TRANSEPT_TEST_MATRICES") == nullptr) return {};
  std::vector<std::string> folders = testing::folders();
  std::erase(folders, "whisper-transcribes");  // half a minute
  return folders;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanMatrixModels);  // without matrices there are none
INSTANTIATE_TEST_SUITE_P(Checkpoints, VulkanMatrixModels, ::testing::ValuesIn(folders_with_matrices()),
                         [](const auto& test) { return testing::test_name(test.param); });

// Kernels of a decoder layer of BART, heads of 64: a product has its norm, its gate or the writing of keys and values
// behind it, and attention stays apart from its product.
TEST(VulkanMatrixDispatches, ADecoderLayerIsEight) {
  if (kSanitized || std::getenv("TRANSEPT_TEST_MATRICES") == nullptr)
    GTEST_SKIP() << "no device with matrices is meant";
  ASSERT_NE(opened().kind, nullptr) << opened().why;
  int64_t counts[2];
  for (const int num_layers : {1, 3}) {
    testing::TestFolder folder;
    testing::TinyBart{.d_model = 256, .heads = 4, .ffn = 48, .decoder_layers = num_layers, .positions = 96}.write(
        folder);
    ModelRunnerOptions options;
    options.isa = detect_isa();
    options.num_threads = 1;
    options.block_size = 4;
    options.max_num_seqs = options.max_num_batched_tokens = 8;
    options.max_num_encoder_tokens = 128;
    options.kv_cache_memory = 4 << 20;
    options.weight_storage = kFloat16Format;
    options.device = opened().kind.get();
    const ModelConfig config = ModelConfig::load(folder.path()).value();
    auto runner = EncoderDecoderModelRunner::create(config, WeightMap::open(config.path).value(), options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    auto executor = std::make_unique<LocalExecutor>(std::move(runner).value());
    const SteadyClock clock;
    const auto engine_options = LLMEngine::Options::of(executor->info());
    LLMEngine engine(engine_options, std::move(executor), nullptr, clock);
    EncoderDecoderInputs text;
    text.prompt_token_ids = {2};
    text.set_encoder_ids({4, 5, 6, 7});
    SamplingParams params;
    params.max_tokens = 6;
    params.ignore_eos = true;
    ASSERT_TRUE(engine.add_request("0", std::move(text), params).ok());
    StepCounts before, after;
    std::vector<RequestOutput> outputs;
    for (int step = 0; step < 5; ++step) {
      before = after;
      ASSERT_TRUE(engine.step(outputs).ok());
      after = engine.executor_stats().steps;
    }
    counts[num_layers / 2] = after.num_dispatches - before.num_dispatches;
  }
  EXPECT_EQ(counts[1] - counts[0], 2 * 8) << counts[0] << " with one layer";
}

}  // namespace
}  // namespace transept

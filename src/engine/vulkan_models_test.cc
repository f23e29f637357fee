// Whole requests of every family on a software Vulkan device give the processor's tokens, under Khronos' validation
// with its checks of barriers. Bits differ: kernels sum in an order of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/all_cases_testing.h"
#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"
#include "engine/opened_vulkan_testing.h"

namespace transept {
namespace {

using testing::Answer;
using testing::Answers;
using testing::Circumstances;
using testing::OpenedVulkan;

// The process's own. Of a null kind: there is no lavapipe, or no validation layer.
OpenedVulkan& opened() {
  static OpenedVulkan opened;
  return opened;
}
OpenedVulkan& opened_without_recordings() {
  static OpenedVulkan opened(false);
  return opened;
}

void expect_near(std::span<const float> there, std::span<const float> here, float bound, const std::string& what) {
  ASSERT_EQ(there.size(), here.size()) << what;
  float most = 0, largest = 1;
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(std::isnan(there[i]), std::isnan(here[i])) << what << " " << i;
    if (std::isnan(here[i])) continue;
    most = std::max(most, std::abs(there[i] - here[i]));
    largest = std::max(largest, std::abs(here[i]));
  }
  EXPECT_LE(most, bound * largest) << what;
}

// A window of 1500 positions takes half a minute, and its family has two folders of short ones. Under sanitizers the
// tests of device_vulkan have the device, and a model takes minutes.
std::vector<std::string> short_folders() {
  if (kSanitized) return {};
  std::vector<std::string> folders = testing::folders();
  std::erase(folders, "whisper-transcribes");
  return folders;
}

class VulkanModels : public testing::FamilyRequests {
 protected:
  void SetUp() override {
    if (opened().kind == nullptr) GTEST_SKIP() << "no software device: " << opened().why;
  }
  void TearDown() override {
    for (const std::string& problem : opened().take_problems()) ADD_FAILURE() << problem;
  }

  static bool is_of_few_families() {
    const std::string& folder = GetParam();
    return folder == "bart-float32" || folder == "t5-float32" || folder == "whisper-float16" ||
           folder == "mllama-float32" || folder == testing::kWide;
  }

  void expect_alike(const Answers& there, const Answers& here, float capture_bound = 1e-4f) {
    ASSERT_EQ(there.size(), here.size());
    for (const auto& [id, answer] : here) {
      SCOPED_TRACE(id);
      const Answer& other = there.at(id);
      ASSERT_EQ(other.ids, answer.ids);
      for (size_t i = 0; i < answer.logprobs.size(); ++i) {
        // The gate of the goldens, a token.
        EXPECT_NEAR(other.logprobs[i], answer.logprobs[i], 1e-4 * static_cast<double>(answer.ids[i].size() + 1));
      }
      expect_near(other.cross_attention, answer.cross_attention, capture_bound, "captured attention");
      expect_near(other.encoder, answer.encoder, 1e-4f, "rows of the encoder");
    }
  }
};

TEST_P(VulkanModels, WholeRequestsHaveTheProcessorsTokens) {
  Circumstances setup{.name = "vulkan", .backend = "auto"};
  const std::unique_ptr<LLMEngine> there = make_engine(setup, *opened().kind), here = make_engine(setup);
  expect_alike(run(*there), run(*here));
}

// Tokens are those of the cpu backend, which rounds queries and probabilities over int8, too; numbers those of the
// reference backend, which does not. Keys whose sums differ in their last bits are now and then rounded to the next
// step of their type, and a probability p moves by p (1 - p) of what that does to its score.
TEST_P(VulkanModels, KvOfEveryTypeGivesTheReferencesAnswers) {
  if (!is_of_few_families()) return;
  const Answers exact = run(*make_engine({.name = "exact", .backend = "reference"}));
  const std::pair<DType, float> steps[] = {
      {DType::kFloat16, 0x1p-10f}, {DType::kBFloat16, 0x1p-7f}, {DType::kInt8, 1.0f / 127}};
  for (const auto& [kv, step] : steps) {
    SCOPED_TRACE(dtype_name(kv));
    Circumstances setup{.name = "kv", .backend = "auto", .kv = kv}, reference = setup;
    reference.backend = "reference";
    const Answers there = run(*make_engine(setup, *opened().kind)), here = run(*make_engine(reference));
    expect_alike(there, here, step);
    EXPECT_NE(here, exact) << "nothing was rounded";
    for (const auto& [id, answer] : run(*make_engine(setup))) EXPECT_EQ(there.at(id).ids, answer.ids) << id;
  }
}

// Products and what an encoder's keys are rounded to. The cpu backend rounds more in an encoder, by level: its answers
// over this folder are not the reference's.
TEST_P(VulkanModels, WeightsInInt8GiveTheReferencesAnswers) {
  if (GetParam() != testing::kWide) return;  // others are too narrow for int8
  const Answers exact = run(*make_engine({.name = "exact", .backend = "reference"}));
  for (const DType kv : {DType::kFloat32, DType::kFloat16, DType::kInt8}) {
    SCOPED_TRACE(dtype_name(kv));
    Circumstances setup{.name = "int8", .backend = "auto", .weights = kInt8Format, .kv = kv}, reference = setup;
    reference.backend = "reference";
    const Answers there = run(*make_engine(setup, *opened().kind)), here = run(*make_engine(reference));
    expect_alike(there, here);
    EXPECT_NE(here, exact) << "nothing was rounded";
  }
}

// Small blocks, a pool for little more than one request: copies, swaps out and in.
TEST_P(VulkanModels, BlocksMoveThroughTheDevicesMemory) {
  if (!GetParam().starts_with("bart") && !GetParam().starts_with("t5")) return;
  Circumstances setup{.name = "swaps", .backend = "auto", .max_model_len = 24, .block_size = 2};
  setup.swap_space = testing::kPool;
  setup.preemption = PreemptionMode::kSwap;
  const std::unique_ptr<LLMEngine> wide = make_engine(setup);
  const uint64_t block_bytes = testing::kPool / static_cast<uint64_t>(wide->executor().info().num_device_blocks);
  setup.pool = 40 * block_bytes;
  const std::unique_ptr<LLMEngine> there = make_engine(setup, *opened().kind), here = make_engine(setup);
  expect_alike(run(*there), run(*here));
  EXPECT_GT(there->executor_stats().bytes_copied, 0u);
  EXPECT_GT(there->executor_stats().bytes_swapped_out, 0u);
}

// In other company, other blocks and other steps a request has the same bits.
TEST_P(VulkanModels, BitsDependOnNoCompany) {
  if (GetParam() != "bart-float32" && GetParam() != "t5-float32" && GetParam() != "whisper-float16") return;
  Circumstances wide{.name = "wide", .backend = "auto"}, narrow = wide;
  narrow.max_num_seqs = 3;
  narrow.max_num_batched_tokens = 5;
  narrow.block_size = 3;
  const std::unique_ptr<LLMEngine> together = make_engine(wide, *opened().kind);
  const std::unique_ptr<LLMEngine> apart = make_engine(narrow, *opened().kind);
  EXPECT_EQ(run(*together), run(*apart));
}

// Steps that are filled with rows and submitted again have the bits of those that are recorded one by one. Of one
// folder of three without takes_all_cases().
TEST_P(VulkanModels, RecordingsChangeNoBit) {
  const std::vector<std::string> folders = short_folders();
  if (!testing::takes_all_cases() && (std::ranges::find(folders, GetParam()) - folders.begin()) % 3 != 0) {
    return;  // one folder of three
  }
  const Circumstances setup{.name = "kept", .backend = "auto"};
  ASSERT_NE(opened_without_recordings().kind, nullptr);
  const std::unique_ptr<LLMEngine> kept = make_engine(setup, *opened().kind);
  const std::unique_ptr<LLMEngine> anew = make_engine(setup, *opened_without_recordings().kind);
  EXPECT_EQ(run(*kept), run(*anew));
  const StepCounts counts = kept->executor_stats().steps;
  // Rows with ranges of keys or kinds of their own are recorded anew.
  const bool may_be_kept = !GetParam().starts_with("mllama") && !GetParam().starts_with("cogagent");
  EXPECT_EQ(counts.num_recorded > 0, may_be_kept);
  EXPECT_EQ(counts.num_replayed > 0, may_be_kept);
  EXPECT_EQ(anew->executor_stats().steps.num_recorded, 0);
  for (const std::string& problem : opened_without_recordings().take_problems()) ADD_FAILURE() << problem;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanModels);  // with sanitizers there are none
INSTANTIATE_TEST_SUITE_P(Checkpoints, VulkanModels, ::testing::ValuesIn(short_folders()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept

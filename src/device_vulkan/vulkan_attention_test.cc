// Attention and the writing of KV on a software device, over the problems of the processor's backends
// (attention/attention_problem_testing.h) against naive attention in double precision.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "attention/attention_problem_testing.h"
#include "device_vulkan/vulkan_backend_testing.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

using testing::DeviceBackend;
using testing::VulkanRig;

class VulkanAttentionTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (VulkanRig::get(GetParam()) == nullptr) GTEST_SKIP() << "no software device: " << VulkanRig::why();
  }

  AttentionResult run(const AttentionProblem& p) {
    DeviceBackend backend(*VulkanRig::get(GetParam()));
    return AttentionSetup(p, backend).run(context_);
  }

  void expect_right(const AttentionProblem& p) {
    SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(p.type) << " heads " << p.heads << "/"
                                      << p.kv_heads << " dim " << p.dim << " block " << p.block_size << " bias "
                                      << static_cast<int>(p.bias) << " causal " << p.causal);
    const AttentionResult result = run(p);
    int row = 0;
    for (const KeyOwner& owner : p.owners) {
      const int first = row;
      for (int head = 0; head < p.heads; ++head) {
        const HeadValues values(p, owner, head / (p.heads / p.kv_heads));
        row = first;
        for (size_t s = 0; s < owner.rows.size(); ++s) {
          for (int i = 0; i < owner.rows[s]; ++i, ++row) {
            const NaiveRow expected = attend_naively(p, owner, values, static_cast<int>(s), i, head);
            for (size_t d = 0; d < expected.out.size(); ++d) {
              // backend_test's bound of the cpu backend
              ASSERT_NEAR(result.out[static_cast<size_t>((row * p.heads + head) * p.dim) + d], expected.out[d], 1e-5)
                  << "owner " << owner.id << " row " << i << " head " << head << " dim " << d;
            }
          }
        }
      }
    }
  }

  ThreadPool pool_{1};
  Arena arena_{size_t{1} << 20};
  CpuDevice device_{pool_};
  Context context_{.device = device_, .arena = arena_};
};

INSTANTIATE_TEST_SUITE_P(Builds, VulkanAttentionTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Reversed" : "Straight"; });

std::vector<KeyOwner> self_owners() { return {{1, 1, {1}}, {2, 7, {7}}, {3, 32, {1}}, {4, 33, {1}}, {5, 70, {9}}}; }
std::vector<KeyOwner> cross_owners() {
  return {{1, 5, {1}}, {2, 64, {1, 1, 1}}, {3, 0, {2}}, {4, 100, {3, 1}}, {5, 1, {1}}};
}
std::vector<KeyOwner> encoder_owners() {
  return {{1, 1, {1}}, {2, 40, {40}}, {3, 32, {32}}, {4, 0, {0}}, {5, 17, {17}}};
}

AttentionProblem problem(AttentionType type) {
  return problem_of(type, type == AttentionType::kDecoder          ? self_owners()
                          : type == AttentionType::kEncoderDecoder ? cross_owners()
                                                                   : encoder_owners());
}

TEST_P(VulkanAttentionTest, IsRightForEveryTypeAndHeadSize) {
  for (const AttentionType type : kAttentionTypes) {
    for (const int dim : {1, 8, 20, 32, 64, 96, 256}) {
      AttentionProblem p = problem(type);
      p.dim = dim;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, IsRightForEveryBlockSize) {
  for (const AttentionType type : {AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
    for (const int block_size : {1, 3, 16, 24, 100}) {
      AttentionProblem p = problem(type);
      p.block_size = block_size;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, IsRightUnderEveryBias) {
  for (const AttentionType type : kAttentionTypes) {
    for (const BiasForm bias : kBiasForms) {
      AttentionProblem p = problem(type);
      p.bias = bias;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, SharesKeysAmongHeads) {
  for (const AttentionType type : kAttentionTypes) {
    for (const int kv_heads : {1, 3}) {
      AttentionProblem p = problem(type);
      p.heads = 6;
      p.kv_heads = kv_heads;
      expect_right(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(VulkanAttentionTest, RowsSeeTheirRanges) {
  std::mt19937 rng(1);
  for (int round = 0; round < 10; ++round) {
    AttentionProblem p = problem(AttentionType::kEncoderDecoder);
    for (KeyOwner& owner : p.owners) {
      owner.ranges = random_ranges(rng, std::accumulate(owner.rows.begin(), owner.rows.end(), 0), owner.keys);
    }
    expect_right(p);
    if (HasFatalFailure()) return;
  }
}

TEST_P(VulkanAttentionTest, CausalityIsAFieldNotAType) {
  AttentionProblem p = problem(AttentionType::kDecoder);
  p.causal = false;
  expect_right(p);
  p = problem(AttentionType::kEncoder);
  p.causal = true;
  expect_right(p);
}

TEST_P(VulkanAttentionTest, GivesProbabilitiesOfTheRowsAndHeadsThatAreWanted) {
  for (const AttentionType type : {AttentionType::kDecoder, AttentionType::kEncoderDecoder}) {
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kT5, BiasForm::kMasking}) {
      AttentionProblem p = problem(type);
      p.heads = 4;
      p.bias = bias;
      const std::vector<int32_t> heads = {3, 1};
      DeviceBackend backend(*VulkanRig::get(GetParam()));
      const AttentionResult result = AttentionSetup(p, backend).run(context_, heads);
      const size_t num_rows = static_cast<size_t>(p.num_rows());
      const size_t num_keys = result.probabilities.size() / heads.size() / num_rows;
      size_t row = 0;
      for (const KeyOwner& owner : p.owners) {
        for (size_t s = 0; s < owner.rows.size(); ++s) {
          for (int i = 0; i < owner.rows[s]; ++i, ++row) {
            for (size_t h = 0; h < heads.size(); ++h) {
              const HeadValues values(p, owner, heads[h] / (p.heads / p.kv_heads));
              const NaiveRow expected = attend_naively(p, owner, values, static_cast<int>(s), i, heads[h]);
              for (size_t key = 0; key < num_keys; ++key) {
                const float is = result.probabilities[(h * num_rows + row) * num_keys + key];
                const double wanted = key < expected.probabilities.size() ? expected.probabilities[key] : 0;
                if (row % 2 != 0) {
                  ASSERT_EQ(is, 7.0f) << "a row that was not wanted";
                } else {
                  ASSERT_NEAR(is, wanted, 1e-5) << "owner " << owner.id << " row " << i << " key " << key;
                }
              }
            }
          }
        }
      }
    }
  }
}

// A sequence's bits are those that it has alone, in other blocks and in one step or several.
TEST_P(VulkanAttentionTest, BitsDependOnTheRowAlone) {
  for (const AttentionType type : kAttentionTypes) {
    AttentionProblem together = problem(type);
    together.bias = BiasForm::kT5;
    const AttentionResult all = run(together);
    size_t first = 0;
    for (const KeyOwner& owner : together.owners) {
      AttentionProblem alone = together;
      alone.owners = {owner};
      if (type != AttentionType::kEncoder) alone.block_size = 5;
      const size_t count = static_cast<size_t>(std::accumulate(owner.rows.begin(), owner.rows.end(), 0)) *
                           static_cast<size_t>(together.heads * together.dim);
      if (count == 0) continue;
      const AttentionResult one = run(alone);
      ASSERT_EQ(std::memcmp(one.out.data(), all.out.data() + first, count * sizeof(float)), 0)
          << "type " << static_cast<int>(type) << " owner " << owner.id;
      first += count;
    }
  }
}

}  // namespace
}  // namespace transept

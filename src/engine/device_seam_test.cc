// Proves the device seam: whole requests of every family on a device whose memory the host cannot touch give the
// processor's answers to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/family_requests_testing.h"
#include "ops/norm.h"
#include "rank/checking_device_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::CheckingDeviceKind;
using testing::Circumstances;

using DeviceSeam = testing::FamilyRequests;

TEST_P(DeviceSeam, WholeRequestsHaveTheProcessorsBits) {
  const Circumstances setups[] = {
      {.name = "cpu"},
      {.name = "reference", .backend = "reference"},
      {.name = "int8", .weights = kInt8Format, .kv = DType::kInt8},
      {.name = "float16", .weights = kFloat16Format, .kv = DType::kFloat16},
  };
  for (const Circumstances& setup : setups) {
    if (is_long_for(setup)) continue;
    SCOPED_TRACE(setup.name);
    const CheckingDeviceKind checking;
    const std::unique_ptr<LLMEngine> there = make_engine(setup, checking), here = make_engine(setup);
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
  const std::unique_ptr<LLMEngine> wide = make_engine(setup);
  const ExecutorInfo& info = wide->executor().info();
  testing::make_tight(info, setup);
  setup.preemption = PreemptionMode::kSwap;
  const CheckingDeviceKind checking;
  const std::unique_ptr<LLMEngine> there = make_engine(setup, checking), here = make_engine(setup);
  EXPECT_EQ(run(*there), run(*here));
  const ExecutorStats stats = there->executor_stats();
  EXPECT_GT(stats.bytes_copied, 0u);
  if (info.spec.encoder_takes_ids()) {
    EXPECT_GT(stats.bytes_swapped_out, 0u);
  }
  EXPECT_GE(static_cast<uint64_t>(checking.counts().bytes_within), stats.bytes_copied);
  EXPECT_GE(static_cast<uint64_t>(checking.counts().bytes_out), stats.bytes_swapped_out);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DeviceSeam, ::testing::ValuesIn(testing::in_turn(testing::folders(), 1)),
                         [](const auto& test) { return testing::test_name(test.param); });

// What the tests above rely on.
TEST(CheckingDeviceDeathTest, TheLineHoldsFromBothSides) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const CheckingDeviceKind kind;
  ThreadPool threads(1);
  const std::unique_ptr<Device> device = kind.make_device(threads, Isa::kGeneric);
  const DeviceBuffer buffer = kind.memory().allocate(64, MemoryUse::kSteps);
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

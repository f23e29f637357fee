// Addresses and order of a device: what models touch only through it.
#include "device_vulkan/vulkan_timeline.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "device_vulkan/fake_vulkan_testing.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "device_vulkan/vulkan_space.h"

namespace transept {
namespace {

using VulkanTimelineTest = testing::TimelineTest;

std::vector<float> counted(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_F(VulkanTimelineTest, BytesComeBackWhateverTheirNumber) {
  const auto timeline = make();
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{3} << 20}) {  // more than is staged at once
    const std::vector<float> values = counted(count, 1);
    const uint64_t bytes = count * sizeof(float);
    std::byte* const first = timeline->allocate(bytes).value();
    std::byte* const second = timeline->allocate(bytes).value();
    timeline->copy_in(first, values.data(), bytes);
    timeline->copy(second, first, bytes);
    timeline->fill(first, 0xFF, bytes);
    std::vector<float> back(count);
    timeline->copy_out(back.data(), second, bytes);
    EXPECT_EQ(back, values) << count;
    timeline->copy_out(back.data(), first, bytes);
    EXPECT_TRUE(std::ranges::all_of(back, [](float value) { return std::isnan(value); })) << count;
  }
  EXPECT_TRUE(timeline->status().ok());
}

// What is staged has been read before it is written over, however ops and copies follow each other.
TEST_F(VulkanTimelineTest, ListsOutliveWhatIsStagedAfterThem) {
  constexpr uint32_t kRows = 64, kWidth = 1024, kRounds = 200;  // 50 MiB through 8
  const auto timeline = make();  // its ops alone would not make it run before the lists are many
  auto* const sums = reinterpret_cast<float*>(timeline->allocate(kRows * kWidth * sizeof(float)).value());
  timeline->fill(sums, 0, kRows * kWidth * sizeof(float));
  std::vector<float> expected(kRows * kWidth);
  for (uint32_t round = 0; round < kRounds; ++round) {
    std::vector<float> added = counted(kRows * kWidth, static_cast<float>(round));
    for (size_t i = 0; i < added.size(); ++i) expected[i] += added[i];
    Recorder& recorder = timeline->recorder();
    const BufferRange list = timeline->stage({std::as_bytes(std::span(added))})[0];
    const BufferRange there = timeline->range(sums, kRows * kWidth * sizeof(float));
    record_add(recorder, DeviceMatrix::dense(list.buffer, kRows, kWidth, list.begin), {},
               DeviceMatrix::dense(there.buffer, kRows, kWidth, there.begin));
    std::fill(added.begin(), added.end(), -1.0f);
  }
  std::vector<float> back(expected.size());
  timeline->copy_out(back.data(), sums, back.size() * sizeof(float));
  EXPECT_EQ(back, expected);
}

TEST_F(VulkanTimelineTest, OneListMayBeLargerThanAllThatIsStaged) {
  constexpr uint32_t kCount = 4 << 20;
  const auto timeline = make();
  const std::vector<float> values = counted(kCount, 0);
  std::byte* const there = timeline->allocate(uint64_t{kCount} * 4).value();
  Recorder& recorder = timeline->recorder();
  const auto lists = timeline->stage({std::as_bytes(std::span(values)), {}, std::as_bytes(std::span(values).first(3))});
  ASSERT_EQ(lists.size(), 3u);
  EXPECT_EQ(lists[1].size, 4u) << "an empty list can be bound";
  EXPECT_FALSE(overlap(lists[0], lists[2]));
  recorder.copy(lists[0], timeline->range(there, uint64_t{kCount} * 4));
  recorder.copy(lists[2], timeline->range(there + 64, 12));
  std::vector<float> back(kCount);
  timeline->copy_out(back.data(), there, uint64_t{kCount} * 4);
  EXPECT_EQ(back[15], 15.0f);
  EXPECT_EQ(back[16], 0.0f);
  EXPECT_EQ(back[18], 2.0f);
  EXPECT_EQ(back.back(), static_cast<float>(kCount - 1));
}

// Larger than an op reaches in one range: such memory may be, and a range of it.
TEST_F(VulkanTimelineTest, MemoryMayBeLargerThanARange) {
  const auto timeline = make({.memory = {.max_bytes = kMiB}});
  EXPECT_EQ(timeline->max_range_bytes(), kMiB);
  std::byte* const there = timeline->allocate(5 * kMiB).value();
  const std::vector<float> values = counted(5 * kMiB / 4, 3);
  timeline->copy_in(there, values.data(), 5 * kMiB);
  std::vector<float> back(values.size());
  timeline->copy_out(back.data(), there, 5 * kMiB);
  EXPECT_EQ(back, values);
  EXPECT_TRUE(timeline->status().ok());
  Recorder& recorder = timeline->recorder();  // but no op has all of it
  const BufferRange all = timeline->range(there, 5 * kMiB);
  record_choose(recorder, DeviceMatrix::dense(all.buffer, 1, 5 * kMiB / 4), timeline->range(there, 12));
  timeline->flush();
  EXPECT_FALSE(timeline->status().ok());
}

TEST_F(VulkanTimelineTest, AfterAFailureNothingRunsAndZerosComeBack) {
  static constexpr Use kUses[] = {Use::kWrite};
  static const KernelSpec kUnknown{"unknown", kUses, 0};
  const auto timeline = make();
  std::byte* const there = timeline->allocate(16).value();
  const float ones[4] = {1, 1, 1, 1};
  timeline->copy_in(there, ones, sizeof ones);
  const BufferRange range = timeline->range(there, 16);
  timeline->recorder().run(kUnknown, {}, std::span(&range, 1), {});
  float back[4] = {7, 7, 7, 7};
  timeline->copy_out(back, there, sizeof back);
  EXPECT_EQ(std::vector<float>(back, back + 4), std::vector<float>(4));
  EXPECT_NE(error_message(timeline->status()).find(timeline->info().name), std::string::npos) << timeline->status();
  EXPECT_NE(error_message(timeline->status()).find("unknown"), std::string::npos) << timeline->status();
  EXPECT_FALSE(timeline->allocate(16).ok());
  timeline->copy_in(there, ones, sizeof ones);
  timeline->fill(there, 1, 16);
  (void)timeline->stage({std::as_bytes(std::span(ones))});
  timeline->free(there);
}

TEST_F(VulkanTimelineTest, FreedMemoryIsWaitedFor) {
  const auto timeline = make();
  std::byte* const kept = timeline->allocate(kMiB).value();
  for (int round = 0; round < 20; ++round) {
    std::byte* const passing = timeline->allocate(kMiB).value();
    timeline->fill(passing, static_cast<uint8_t>(round), kMiB);
    timeline->copy(kept, passing, kMiB);
    timeline->free(passing);
  }
  uint32_t last = 0;
  timeline->copy_out(&last, kept + kMiB - 4, 4);
  EXPECT_EQ(last, 0x13131313u);
}

// Drivers allow some thousands of allocations, and models have that many lists.
TEST_F(VulkanTimelineTest, SmallMemoriesShareABuffer) {
  const auto timeline = make();
  const uint64_t free = timeline->free_bytes();
  std::vector<std::byte*> all;
  for (uint32_t i = 0; i < 3000; ++i) {  // 12 MiB
    all.push_back(timeline->allocate(4000 + i % 7).value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.back()) % 64, 0u);
    timeline->copy_in(all.back(), &i, sizeof i);
  }
  EXPECT_EQ(timeline->free_bytes(), free - 16 * kMiB);
  for (uint32_t i = 0; i < all.size(); i += 2) timeline->free(all[i]);
  for (uint32_t i = 1; i < all.size(); i += 2) {
    uint32_t value = 0;
    timeline->copy_out(&value, all[i], sizeof value);
    ASSERT_EQ(value, i);
    timeline->free(all[i]);
  }
  EXPECT_GE(timeline->free_bytes(), free - 8 * kMiB) << "one is kept for what comes";
  std::byte* const next = timeline->allocate(64).value();
  EXPECT_GE(timeline->free_bytes(), free - 8 * kMiB);
  timeline->free(next);
}

TEST_F(VulkanTimelineTest, ASpaceKeepsItsMemoryAndGivesItBack) {
  auto space = VulkanSpace::create(make());
  EXPECT_FALSE(space->is_host());
  const uint64_t free = space->free_bytes();
  DeviceBuffer buffer = space->allocate(kMiB, MemoryUse::kWeights);
  EXPECT_EQ(space->free_bytes(), free - kMiB);
  EXPECT_EQ(space->allocate(0, MemoryUse::kKv).data(), nullptr);
  EXPECT_EQ(space->allocate(free, MemoryUse::kKv).data(), nullptr) << "refused, not thrown";
  buffer = {};
  EXPECT_EQ(space->free_bytes(), free);
  buffer = space->allocate(64, MemoryUse::kSteps);
  space = nullptr;  // the buffer keeps it
}

// What is counted of a device's memory is all that is gone of it.
TEST_F(VulkanTimelineTest, MemoryIsCountedByUse) {
  const auto space = VulkanSpace::create(make());
  const DeviceUsage before = space->usage();
  const uint64_t free = space->free_bytes();
  EXPECT_EQ(before.memory_bytes, (std::array<uint64_t, kNumMemoryUses>{}));
  EXPECT_GT(before.own_bytes, 0u) << "sums of fused kernels";
  EXPECT_GE(before.transfer_bytes, 12 * kMiB) << "one area to upload from, one to read";
  DeviceBuffer weights = space->allocate(3 * kMiB, MemoryUse::kWeights);
  const DeviceBuffer kv = space->allocate(2 * kMiB, MemoryUse::kKv), steps = space->allocate(100, MemoryUse::kSteps);
  DeviceUsage usage = space->usage();
  EXPECT_EQ(usage.memory_bytes, (std::array<uint64_t, kNumMemoryUses>{3 * kMiB, 2 * kMiB, 100}));
  EXPECT_EQ(5 * kMiB + 100 + usage.own_bytes - before.own_bytes, free - space->free_bytes());
  EXPECT_EQ(usage.transfer_bytes, before.transfer_bytes);
  weights = {};
  usage = space->usage();
  EXPECT_EQ(usage.memory_bytes[static_cast<size_t>(MemoryUse::kWeights)], 0u);
  EXPECT_EQ(2 * kMiB + 100 + usage.own_bytes - before.own_bytes, free - space->free_bytes());
}

TEST_F(VulkanTimelineTest, WorkIsCountedAsTheHostSeesIt) {
  const auto timeline = make();
  std::byte* const there = timeline->allocate(kMiB).value();
  const auto work = [&] {
    timeline->fill(there, 0, kMiB);
    timeline->flush();
  };
  work();
  const DeviceUsage before = timeline->usage();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(timeline->usage().busy_seconds, before.busy_seconds) << "it has nothing to do";
  const TimePoint begin = steady_now();
  for (int i = 0; i < 3; ++i) work();
  timeline->flush();  // nothing is left
  char back[40];
  timeline->copy_out(back, there, sizeof back, 64);
  const double seconds = std::chrono::duration<double>(steady_now() - begin).count();
  const DeviceUsage after = timeline->usage();
  EXPECT_EQ(after.num_submits, before.num_submits + 4);
  EXPECT_EQ(after.read_back_bytes, before.read_back_bytes + 64);
  EXPECT_GT(after.busy_seconds, before.busy_seconds);
  EXPECT_LE(after.busy_seconds - before.busy_seconds, seconds);
}

// All that a model's step does, on a Vulkan whose calls fail in turn.
Status run_step(const testing::FakeVulkan& fake) {
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, VulkanInstance::create(fake.entry()));
  ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
  ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, "vulkan"));
  ASSIGN_OR_RETURN(std::shared_ptr<VulkanDevice> device, VulkanDevice::create(instance, devices[index]));
  ASSIGN_OR_RETURN(std::unique_ptr<VulkanTimeline> timeline, VulkanTimeline::create(std::move(device)));
  const std::shared_ptr<VulkanSpace> space = VulkanSpace::create(std::move(timeline));
  const DeviceBuffer large = space->allocate(kMiB, MemoryUse::kSteps);
  const DeviceBuffer small = space->allocate(4096, MemoryUse::kSteps);
  if (large.data() == nullptr || small.data() == nullptr) return absl::ResourceExhaustedError("as the log says");
  const std::vector<float> values = counted(16, 0);
  space->copy_in(small.data(), values.data(), 64);
  space->with_timeline([&](VulkanTimeline& inside) {
    Recorder& recorder = inside.recorder();
    const BufferRange list = inside.stage({std::as_bytes(std::span(values))})[0];
    const BufferRange x = inside.range(small.data(), 64);
    record_add(recorder, DeviceMatrix::dense(list.buffer, 1, 16, list.begin), {},
               DeviceMatrix::dense(x.buffer, 1, 16, x.begin));
  });
  float back[16] = {7};
  space->copy_out(back, small.data(), sizeof back);
  if (!space->status().ok()) {
    EXPECT_EQ(back[0], 0.0f);
  }
  return space->status();
}

TEST(VulkanTimelineErrorsTest, EveryCallMayFail) {
  int num_calls = 0;
  {
    testing::FakeVulkan fake;
    const Status status = run_step(fake);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(fake.commands["copy"], 2);
    EXPECT_EQ(fake.commands["dispatch"], 1);
    EXPECT_EQ(fake.num_live(), 0u);
    num_calls = fake.num_calls;
  }
  EXPECT_GT(num_calls, 30);
  for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST, VK_TIMEOUT}) {
    for (int call = 0; call < num_calls; ++call) {
      testing::FakeVulkan fake;
      fake.fail_at = call;
      fake.result = result;
      const Status status = run_step(fake);
      ASSERT_FALSE(status.ok()) << fake.failed;
      EXPECT_TRUE(fake.misuse.empty()) << fake.failed << ": " << fake.misuse.front();
      EXPECT_EQ(fake.num_live(), 0u) << fake.failed;
    }
  }
}

using VulkanTimelineDeathTest = VulkanTimelineTest;

TEST_F(VulkanTimelineDeathTest, TheHostTouchesNoAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto timeline = make();
  std::byte* const there = timeline->allocate(64).value();
  float host = 0;
  volatile float* const touched = reinterpret_cast<float*>(there);
  EXPECT_DEATH(touched[0] = 1, "");
  EXPECT_DEATH((void)timeline->range(&host, 4), "no address of the device");
  EXPECT_DEATH((void)timeline->range(there, 68), "no address of the device");
  EXPECT_DEATH((void)timeline->range(there + 64, 4), "no address of the device");
}

}  // namespace
}  // namespace transept

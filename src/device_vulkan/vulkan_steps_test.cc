// Steps on a software device under validation: what is recorded, what is submitted again, and that each run has its own
// lists, tables and numbers.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "device_vulkan/fake_vulkan_testing.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "device_vulkan/vulkan_space.h"

namespace transept {
namespace {

constexpr uint64_t kRoom = 1 << 16;  // bytes of a step's rows

// y[i] = table[ids[i]] + added[i], of as many rows as there are ids: a step with lists, a table and a copy.
struct Step {
  std::vector<float> table, added;
  std::vector<int32_t> ids;

  static Step random(std::mt19937& rng, size_t num_rows, size_t table_size) {
    Step step;
    for (size_t i = 0; i < table_size; ++i) step.table.push_back(static_cast<float>(rng() % 1000));
    for (size_t i = 0; i < num_rows; ++i) {
      step.added.push_back(static_cast<float>(rng() % 1000));
      step.ids.push_back(static_cast<int32_t>(rng() % table_size));
    }
    return step;
  }

  std::vector<float> expected() const {
    std::vector<float> result;
    for (size_t i = 0; i < ids.size(); ++i) result.push_back(table[static_cast<size_t>(ids[i])] + added[i]);
    return result;
  }

  // Into `rows`, `times` of it after each other.
  void record(VulkanTimeline& timeline, std::byte* rows, int times = 1) const {
    const auto count = static_cast<uint32_t>(ids.size());
    for (int i = 0; i < times; ++i) {
      std::span<const std::byte> whole = std::as_bytes(std::span(table));
      VulkanTimeline::StagedTable staged;
      if (timeline.is_in_step()) staged = timeline.stage_table(whole), whole = {};
      std::vector<int32_t> places = ids;
      for (int32_t& place : places) place += static_cast<int32_t>(staged.first);
      Recorder& recorder = timeline.recorder();
      const std::vector<BufferRange> lists = timeline.stage({std::as_bytes(std::span(places)), whole});
      if (!timeline.is_in_step()) staged.range = lists[1];
      const BufferRange there = timeline.range(rows, count * sizeof(float));
      const DeviceMatrix y = DeviceMatrix::dense(there.buffer, count, 1, there.begin);
      record_gather_rows(recorder, {staged.range, static_cast<uint32_t>(staged.range.size / 4), 1}, lists[0], 1, y);
      Recorder& next = timeline.recorder();
      const BufferRange list = timeline.stage({std::as_bytes(std::span(added))})[0];
      record_add(next, DeviceMatrix::dense(list.buffer, count, 1, list.begin), {}, y);
    }
  }

  std::vector<float> run(VulkanTimeline& timeline, std::byte* rows, StepCounts& counts, int times = 1) const {
    std::vector<float> result(ids.size());
    timeline.begin_step();
    record(timeline, rows, times);
    timeline.copy_out(result.data(), rows, result.size() * sizeof(float));
    const StepCounts step = timeline.end_step();
    counts.num_recorded += step.num_recorded;
    counts.num_replayed += step.num_replayed;
    return result;
  }
};

class VulkanStepsTest : public testing::TimelineTest {
 protected:
  std::mt19937 rng_{1};
};

TEST_F(VulkanStepsTest, AThousandStepsOfOtherLengthsAreOneRecording) {
  const auto timeline = make();
  std::byte* const rows = timeline->allocate(kRoom).value();
  StepCounts counts;
  (void)Step::random(rng_, 8, 5).run(*timeline, rows, counts);
  const uint64_t free = timeline->free_bytes();
  for (int i = 0; i < 1000; ++i) {
    const Step step = Step::random(rng_, 8, 1 + rng_() % 200);
    ASSERT_EQ(step.run(*timeline, rows, counts), step.expected()) << i;
  }
  EXPECT_EQ(counts.num_recorded, 1);
  EXPECT_EQ(counts.num_replayed, 1000);
  EXPECT_EQ(timeline->num_kept(), 1u);
  EXPECT_EQ(timeline->free_bytes(), free);
  EXPECT_TRUE(timeline->status().ok());
}

TEST_F(VulkanStepsTest, EachBucketHasItsRecording) {
  const auto timeline = make();
  std::byte* const rows = timeline->allocate(kRoom).value();
  StepCounts counts;
  for (int i = 0; i < 200; ++i) {
    const Step step = Step::random(rng_, size_t{1} << rng_() % 7, 1 + rng_() % 50);
    ASSERT_EQ(step.run(*timeline, rows, counts), step.expected()) << i;
  }
  EXPECT_EQ(counts.num_recorded, 7);
  EXPECT_EQ(counts.num_replayed, 193);
}

TEST_F(VulkanStepsTest, WhatIsKeptIsBounded) {
  const auto timeline = make({.most_kept = 4});
  std::byte* const rows = timeline->allocate(kRoom).value();
  StepCounts counts;
  for (size_t i = 0; i < 60; ++i) {
    const Step step = Step::random(rng_, 1 + i % 6, 9);
    ASSERT_EQ(step.run(*timeline, rows, counts), step.expected()) << i;
    EXPECT_LE(timeline->num_kept(), 4u);
  }
  EXPECT_EQ(counts.num_recorded, 60) << "each was given up before it came again";
}

TEST_F(VulkanStepsTest, WithoutThemEveryStepIsRecordedAnew) {
  const auto timeline = make({.keeps_recordings = false});
  std::byte* const rows = timeline->allocate(kRoom).value();
  StepCounts counts;
  for (int i = 0; i < 20; ++i) {
    const Step step = Step::random(rng_, 8, 9);
    ASSERT_EQ(step.run(*timeline, rows, counts), step.expected());
  }
  EXPECT_EQ(counts.num_recorded + counts.num_replayed, 0);
  EXPECT_EQ(timeline->num_kept(), 0u);
}

// What comes before a step is submitted with its own lists, and may run while the step is recorded.
TEST_F(VulkanStepsTest, OpsBeforeAStepRunBeforeIt) {
  const auto timeline = make();
  std::byte* const rows = timeline->allocate(kRoom).value();
  std::byte* const others = timeline->allocate(kRoom).value();
  for (int i = 0; i < 50; ++i) {
    const Step before = Step::random(rng_, 64, 9), step = Step::random(rng_, 8, 9);
    before.record(*timeline, others, 3);
    timeline->begin_step();
    step.record(*timeline, rows);
    const BufferRange from = timeline->range(others, 32), to = timeline->range(rows, 32);
    record_add(timeline->recorder(), DeviceMatrix::dense(from.buffer, 8, 1, from.begin), {},
               DeviceMatrix::dense(to.buffer, 8, 1, to.begin));
    std::vector<float> result(8), expected = step.expected();
    timeline->copy_out(result.data(), rows, 32);
    const StepCounts of_step = timeline->end_step();
    EXPECT_EQ(of_step.num_replayed, i == 0 ? 0 : 1);
    for (size_t row = 0; row < 8; ++row) expected[row] += before.expected()[row];
    ASSERT_EQ(result, expected) << i;
  }
}

// A step that reads nothing back runs while the next begins, whose lists lie where its own do.
TEST_F(VulkanStepsTest, AStepWaitsForTheListsOfTheOneBefore) {
  constexpr uint32_t kCount = 1 << 18;
  const auto timeline = make();
  std::byte* const sums = timeline->allocate(kCount * sizeof(float)).value();
  timeline->fill(sums, 0, kCount * sizeof(float));
  std::vector<float> expected(kCount), back(kCount);
  int64_t num_replayed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<float> added(kCount, static_cast<float>(1 + i % 7));
    for (float& sum : expected) sum += added[0];
    timeline->begin_step();
    Recorder& recorder = timeline->recorder();
    const BufferRange list = timeline->stage({std::as_bytes(std::span(added))})[0];
    const BufferRange there = timeline->range(sums, kCount * sizeof(float));
    record_add(recorder, DeviceMatrix::dense(list.buffer, 1, kCount, list.begin), {},
               DeviceMatrix::dense(there.buffer, 1, kCount, there.begin));
    num_replayed += timeline->end_step().num_replayed;
  }
  timeline->copy_out(back.data(), sums, kCount * sizeof(float));
  EXPECT_EQ(back, expected);
  EXPECT_EQ(num_replayed, 99);
}

TEST_F(VulkanStepsTest, TablesOfOneSizeAreToldApart) {
  const auto timeline = make();
  std::byte* const rows = timeline->allocate(kRoom).value();
  std::byte* const others = timeline->allocate(kRoom).value();
  for (int i = 0; i < 20; ++i) {
    const Step one = Step::random(rng_, 8, 30), two = Step::random(rng_, 8, 30);
    std::vector<float> first(8), second(8);
    timeline->begin_step();
    one.record(*timeline, rows);
    two.record(*timeline, others);
    one.record(*timeline, rows);
    timeline->copy_out(first.data(), rows, 32);
    timeline->copy_out(second.data(), others, 32);
    (void)timeline->end_step();
    ASSERT_EQ(first, one.expected()) << i;
    ASSERT_EQ(second, two.expected()) << i;
  }
}

// More than the memory of lists and of tables has at first, more ops than one recording, the same ops twice.
TEST_F(VulkanStepsTest, AStepMayBeOfManyParts) {
  const auto timeline = make({.most_ops = 6});
  std::byte* const rows = timeline->allocate(kRoom).value();
  StepCounts counts;
  for (int i = 0; i < 4; ++i) {
    const Step step = Step::random(rng_, 16, 40);
    ASSERT_EQ(step.run(*timeline, rows, counts, 20), step.expected()) << i;
  }
  EXPECT_EQ(counts.num_recorded, 7) << "40 ops and a copy";
  EXPECT_EQ(counts.num_replayed, 21);
  const Step large = Step::random(rng_, 16384, 3'000'000);
  ASSERT_EQ(large.run(*timeline, rows, counts), large.expected());
  const int64_t num_recorded = counts.num_recorded;
  for (int i = 0; i < 2; ++i) {
    const Step step = Step::random(rng_, 16384, 2'000'000);
    ASSERT_EQ(step.run(*timeline, rows, counts, 80), step.expected()) << "10 MiB of lists";
  }
  EXPECT_GT(counts.num_recorded, num_recorded);
  EXPECT_TRUE(timeline->status().ok());
}

TEST_F(VulkanStepsTest, OneListMayBeLargerThanAllThatIsStaged) {
  const auto timeline = make();
  constexpr uint64_t kBytes = uint64_t{12} << 20;
  std::byte* const there = timeline->allocate(kBytes).value();
  StepCounts counts;
  std::vector<float> values(kBytes / 4), back(values.size());
  for (int i = 0; i < 3; ++i) {
    std::iota(values.begin(), values.end(), static_cast<float>(i));
    timeline->begin_step();
    Recorder& recorder = timeline->recorder();
    recorder.copy(timeline->stage({std::as_bytes(std::span(values))})[0], timeline->range(there, kBytes));
    timeline->copy_out(back.data(), there, kBytes);
    counts = timeline->end_step();
    ASSERT_EQ(back, values) << i;
  }
  EXPECT_EQ(counts.num_recorded, 0);
}

TEST_F(VulkanStepsTest, FreedMemoryTakesItsRecordings) {
  const auto timeline = make();
  StepCounts counts;
  for (int i = 0; i < 10; ++i) {
    std::byte* const rows = timeline->allocate(uint64_t{1} << 20).value();
    for (int j = 0; j < 3; ++j) {
      const Step step = Step::random(rng_, 8, 9);
      ASSERT_EQ(step.run(*timeline, rows, counts), step.expected());
    }
    timeline->free(rows);
    EXPECT_EQ(timeline->num_kept(), 0u);
  }
  EXPECT_EQ(counts.num_recorded, 10);
}

// Some of what is copied, of as much as is there.
TEST_F(VulkanStepsTest, CopiesOfSomeRowsAreOneRecording) {
  const auto timeline = make();
  constexpr uint64_t kBytes = uint64_t{9} << 20;
  std::byte* const there = timeline->allocate(kBytes).value();
  std::vector<float> values(kBytes / 4);
  std::iota(values.begin(), values.end(), 1.0f);
  timeline->copy_in(there, values.data(), kBytes);
  int64_t num_recorded = 0;
  for (const uint64_t count : {values.size(), size_t{1}, size_t{1000}, size_t{1'500'000}, values.size() - 1}) {
    std::vector<float> back(values.size() + 1, -1.0f);
    timeline->begin_step();
    timeline->copy_out(back.data(), there, count * 4, kBytes);
    num_recorded += timeline->end_step().num_recorded;
    EXPECT_TRUE(std::equal(values.begin(), values.begin() + static_cast<ptrdiff_t>(count), back.begin())) << count;
    EXPECT_EQ(back[count], -1.0f) << "no more than was asked for";
  }
  EXPECT_EQ(num_recorded, 3) << "pieces of 4, 4 and 1 MiB";
}

// A step is one thread's; what others call meanwhile waits for its end.
TEST_F(VulkanStepsTest, ThreadsTakeTurns) {
  const auto space = VulkanSpace::create(make());
  std::vector<std::thread> threads;
  std::array<StepCounts, 3> counts;
  std::array<int, 3> num_wrong{};
  std::array<DeviceBuffer, 3> all_rows;
  for (DeviceBuffer& rows : all_rows) rows = space->allocate(kRoom, MemoryUse::kSteps);
  for (size_t t = 0; t < counts.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(static_cast<uint32_t>(t));
      const DeviceBuffer& rows = all_rows[t];
      for (int i = 0; i < 60; ++i) {
        const Step step = Step::random(rng, 8, 1 + rng() % 20);
        std::vector<float> result(8);
        const bool is_step = i % 3 != 2;
        if (is_step) space->begin_step();
        space->with_timeline([&](VulkanTimeline& timeline) { step.record(timeline, rows.data()); });
        space->copy_out_some(result.data(), rows.data(), 32, 32);
        if (is_step) counts[t].num_replayed += space->end_step().num_replayed;
        num_wrong[t] += result != step.expected();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < counts.size(); ++t) {
    EXPECT_EQ(num_wrong[t], 0);
    EXPECT_EQ(counts[t].num_replayed, 39);
  }
}

Status run_steps(const testing::FakeVulkan& fake) {
  ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, VulkanInstance::create(fake.entry()));
  ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
  ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, "vulkan"));
  ASSIGN_OR_RETURN(std::shared_ptr<VulkanDevice> device, VulkanDevice::create(instance, devices[index]));
  ASSIGN_OR_RETURN(const std::unique_ptr<VulkanTimeline> timeline, VulkanTimeline::create(std::move(device)));
  ASSIGN_OR_RETURN(std::byte* const rows, timeline->allocate(kRoom));
  std::mt19937 rng(1);
  StepCounts counts;
  for (const size_t num_rows : {8u, 8u, 4u, 8u}) {
    Step::random(rng, 8, 9).record(*timeline, rows);  // before it
    (void)Step::random(rng, num_rows, 9).run(*timeline, rows, counts);
  }
  if (timeline->status().ok()) {
    EXPECT_EQ(counts.num_recorded, 2);
    EXPECT_EQ(counts.num_replayed, 2);
  }
  timeline->free(rows);
  return timeline->status();
}

TEST(VulkanStepsErrorsTest, EveryCallMayFail) {
  int num_calls = 0;
  {
    testing::FakeVulkan fake;
    const Status status = run_steps(fake);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(fake.misuse.empty()) << fake.misuse.front();
    EXPECT_EQ(fake.num_live(), 0u);
    num_calls = fake.num_calls;
  }
  for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST, VK_TIMEOUT}) {
    for (int call = 0; call < num_calls; ++call) {
      testing::FakeVulkan fake;
      fake.fail_at = call;
      fake.result = result;
      ASSERT_FALSE(run_steps(fake).ok()) << fake.failed;
      EXPECT_TRUE(fake.misuse.empty()) << fake.failed << ": " << fake.misuse.front();
      EXPECT_EQ(fake.num_live(), 0u) << fake.failed;
    }
  }
}

}  // namespace
}  // namespace transept

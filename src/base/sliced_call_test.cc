// A call in slices does what it would do at once, stands still when its tasks are done, and ends early when dropped.
#include "base/sliced_call.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace transept {
namespace {

class SlicedCallTest : public ::testing::TestWithParam<int> {
 protected:
  // Counts in every task, over several loops of different lengths.
  void loops() {
    for (const int64_t num_tasks : kLoops) {
      pool_.parallel_for(num_tasks, [&](int64_t task, int) {
        ++num_done_;
        sum_ += task;
      });
    }
  }

  static constexpr int64_t kLoops[] = {1, 7, 0, 64, 2};
  static constexpr int64_t kNumTasks = 74, kSum = 7 * 6 / 2 + 64 * 63 / 2 + 1;

  ThreadPool pool_{GetParam()};
  SlicedCall call_{pool_};
  std::atomic<int64_t> num_done_{0}, sum_{0};
};

TEST_P(SlicedCallTest, RunsToTheEndAtOnce) {
  call_.begin([this] { loops(); });
  EXPECT_TRUE(call_.is_under_way());
  EXPECT_EQ(num_done_, 0);
  EXPECT_TRUE(call_.run(SlicedCall::kToTheEnd));
  EXPECT_FALSE(call_.is_under_way());
  EXPECT_EQ(num_done_, kNumTasks);
  EXPECT_EQ(sum_, kSum);
}

// Every slice does as many tasks as it may, whatever the threads; each task is done once, and between two slices
// nothing moves, though the owner uses the pool itself.
TEST_P(SlicedCallTest, EverySliceDoesItsTasksAndStandsStillAfterThem) {
  for (const int64_t num_tasks : {1, 3, 8, 70, 74, 75}) {
    num_done_ = sum_ = 0;
    call_.begin([this] { loops(); });
    int64_t expected = 0;
    for (bool has_ended = false; !has_ended;) {
      has_ended = call_.run(num_tasks);
      expected = std::min(expected + num_tasks, kNumTasks);
      ASSERT_EQ(num_done_, expected);
      // A call that has done its last task ends with it, not at the next turn.
      EXPECT_EQ(has_ended, expected == kNumTasks);
      std::atomic<int64_t> others{0};
      pool_.parallel_for(33, [&](int64_t, int) { ++others; });
      EXPECT_EQ(others, 33);
      EXPECT_EQ(num_done_, expected);
    }
    EXPECT_EQ(sum_, kSum);
  }
}

TEST_P(SlicedCallTest, ThePoolCountsTasks) {
  const int64_t before = pool_.num_tasks_done();
  call_.begin([this] { loops(); });
  EXPECT_FALSE(call_.run(9));
  EXPECT_EQ(pool_.num_tasks_done() - before, 9);
  EXPECT_TRUE(call_.run(SlicedCall::kToTheEnd));
  EXPECT_EQ(pool_.num_tasks_done() - before, kNumTasks);
  loops();
  EXPECT_EQ(pool_.num_tasks_done() - before, 2 * kNumTasks);
}

TEST_P(SlicedCallTest, WhatIsDroppedDoesNothingMore) {
  bool has_returned = false;
  call_.begin([&] {
    loops();
    has_returned = true;
  });
  EXPECT_FALSE(call_.run(5));
  const int64_t done = num_done_;
  EXPECT_LT(done, kNumTasks);
  call_.drop();
  EXPECT_TRUE(has_returned);
  EXPECT_FALSE(call_.is_under_way());
  EXPECT_EQ(num_done_, done);
  // The next one is whole.
  num_done_ = sum_ = 0;
  call_.begin([this] { loops(); });
  EXPECT_TRUE(call_.run(SlicedCall::kToTheEnd));
  EXPECT_EQ(sum_, kSum);
}

TEST_P(SlicedCallTest, WhatNeverRanIsDroppedWhole) {
  call_.begin([this] { loops(); });
  call_.drop();
  EXPECT_EQ(num_done_, 0);
}

TEST_P(SlicedCallTest, AnOwnerMayGoBeforeTheCallHasEnded) {
  {
    SlicedCall call(pool_);
    call.begin([this] { loops(); });
    EXPECT_FALSE(call.run(5));
  }
  EXPECT_LT(num_done_, kNumTasks);
  std::atomic<int64_t> others{0};
  pool_.parallel_for(33, [&](int64_t, int) { ++others; });
  EXPECT_EQ(others, 33);
}

INSTANTIATE_TEST_SUITE_P(Threads, SlicedCallTest, ::testing::Values(1, 2, 4));

enum ChildEnd : int { kAsWanted, kThreadsAreNotLimited, kOtherwise };

// The limit of processes does not hold for root, who becomes nobody: in a child, which ends here.
[[noreturn]] void begin_without_threads() {
  constexpr uid_t kNobody = 65534;
  constexpr rlimit kNone = {.rlim_cur = 0, .rlim_max = 0};
  alarm(60);  // whoever waits for a call that never runs
  const bool is_limited =
      setrlimit(RLIMIT_NPROC, &kNone) == 0 && (geteuid() != 0 || setresuid(kNobody, kNobody, kNobody) == 0);
  try {
    std::thread([] {}).join();
    _exit(kThreadsAreNotLimited);
  } catch (const std::system_error&) {
    if (!is_limited) _exit(kThreadsAreNotLimited);
  }
  ThreadPool pool(1);
  int64_t num_ran = 0;
  SlicedCall call(pool);
  for (int i = 0; i < 2; ++i) {
    call.begin([&] { pool.parallel_for(5, [&](int64_t, int) { ++num_ran; }); });
    if (!call.run(1) || call.is_under_way()) _exit(kOtherwise);
  }
  call.begin([&] { ++num_ran; });
  call.drop();
  _exit(num_ran == 10 && !call.is_under_way() ? kAsWanted : kOtherwise);
}

TEST(SlicedCallDeathTest, WithoutAThreadACallRunsWhole) {
  int end = kAsWanted;
  EXPECT_EXIT(
      begin_without_threads(),
      [&](int status) {
        end = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return end == kAsWanted || end == kThreadsAreNotLimited;
      },
      "");
  if (end == kThreadsAreNotLimited) GTEST_SKIP() << "no privilege to be held by a limit of processes";
}

}  // namespace
}  // namespace transept

// A call in slices does what it would do at once, stands still when its time is over, and ends early when dropped.
#include "base/sliced_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace transept {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr SlicedCall::Duration kNoTime{0};

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

// Without time every slice does a task a thread at the most: so it takes many, each task is done once, and between two
// slices nothing moves, though the owner uses the pool itself.
TEST_P(SlicedCallTest, EverySliceGetsOnAndStandsStillAfterIt) {
  call_.begin([this] { loops(); });
  int64_t num_slices = 0, done_before = 0;
  bool has_ended = false;
  while (!has_ended) {
    has_ended = call_.run(kNoTime);
    ++num_slices;
    const int64_t done = num_done_;
    EXPECT_TRUE(has_ended || done > done_before);
    EXPECT_LE(done, done_before + 2 * GetParam());  // the end of one loop, and a task of the next
    std::atomic<int64_t> others{0};
    pool_.parallel_for(33, [&](int64_t, int) { ++others; });
    EXPECT_EQ(others, 33);
    EXPECT_EQ(num_done_, done);
    done_before = done;
  }
  EXPECT_GE(num_slices, kNumTasks / (2 * GetParam()));
  EXPECT_EQ(num_done_, kNumTasks);
  EXPECT_EQ(sum_, kSum);
}

TEST_P(SlicedCallTest, ALimitIsKeptButForTasksThatHaveBegun) {
  call_.begin([this] {
    pool_.parallel_for(400, [this](int64_t, int) {
      const auto end = steady_clock::now() + microseconds(500);
      while (steady_clock::now() < end) {
      }
      ++num_done_;
    });
  });
  EXPECT_FALSE(call_.run(microseconds(5000)));
  EXPECT_GE(num_done_, 1);
  EXPECT_LE(num_done_, 11 * GetParam());  // ten of half a millisecond a thread, and the one that was begun
  EXPECT_TRUE(call_.run(SlicedCall::kToTheEnd));
  EXPECT_EQ(num_done_, 400);
}

TEST_P(SlicedCallTest, WhatIsDroppedDoesNothingMore) {
  bool has_returned = false;
  call_.begin([&] {
    loops();
    has_returned = true;
  });
  EXPECT_FALSE(call_.run(kNoTime));
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
    EXPECT_FALSE(call.run(kNoTime));
  }
  EXPECT_LT(num_done_, kNumTasks);
  std::atomic<int64_t> others{0};
  pool_.parallel_for(33, [&](int64_t, int) { ++others; });
  EXPECT_EQ(others, 33);
}

INSTANTIATE_TEST_SUITE_P(Threads, SlicedCallTest, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace transept

#include "speech/live_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Tasks {
 public:
  std::function<void()> task() {
    return [this] { ++num_run; };
  }
  bool are_run(int count) {
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (num_run < count && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
    return num_run == count;
  }
  std::atomic<int> num_run{0};
};

TEST(LiveWorkers, RunWhatIsPostedEitherWay) {
  for (const int num_threads : {1, 3}) {
    Tasks tasks;
    LiveWorkers workers(num_threads);
    for (int i = 0; i < 100; ++i) {
      i % 3 == 0 ? workers.post(tasks.task()) : workers.post_soon(tasks.task());
      if (i % 10 == 0) std::this_thread::sleep_for(milliseconds(3));
    }
    EXPECT_TRUE(tasks.are_run(100));
    // After ticks that found nothing, when no thread looks any more.
    std::this_thread::sleep_for((LiveWorkers::kMostEmptyTicks + 10) * LiveWorkers::kTick);
    workers.post_soon(tasks.task());
    EXPECT_TRUE(tasks.are_run(101));
  }
}

// While a thread looks every kTick, tasks that may wait are done at its looks: few, however many are posted.
TEST(LiveWorkers, WhatMayWaitIsDoneTogether) {
  LiveWorkers workers(1);
  std::atomic<int> num_run{0}, num_bursts{0};
  std::atomic<int64_t> last{0};
  const auto task = [&] {
    const int64_t now = std::chrono::duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
    if (now - last.exchange(now) >= LiveWorkers::kTick.count() / 2) ++num_bursts;
    ++num_run;
  };
  constexpr int kPosts = 400;
  const auto begin = steady_clock::now();
  for (int i = 0; i < kPosts; ++i) {
    workers.post_soon(task);
    std::this_thread::sleep_for(milliseconds(1));
  }
  const auto num_ticks = (steady_clock::now() - begin) / LiveWorkers::kTick;
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  while (num_run < kPosts && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(num_run, kPosts);
  EXPECT_LE(num_bursts, num_ticks + 2);
  EXPECT_GE(num_bursts, 2);
}

TEST(LiveWorkers, HurryDoesNotWaitForATick) {
  Tasks tasks;
  LiveWorkers workers(2);
  workers.post_soon(tasks.task());
  ASSERT_TRUE(tasks.are_run(1));
  workers.hurry();  // of nothing
  steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 50; ++i) {
    const auto begin = steady_clock::now();
    std::latch done(1);
    workers.post_soon([&] { done.count_down(); });
    workers.hurry();
    done.wait();
    least = std::min<steady_clock::duration>(least, steady_clock::now() - begin);
  }
  EXPECT_LT(least, LiveWorkers::kTick / 2);
}

TEST(LiveWorkers, StopRunsWhatIsQueued) {
  Tasks tasks;
  LiveWorkers workers(2);
  for (int i = 0; i < 20; ++i) workers.post_soon(tasks.task());
  workers.stop();
  EXPECT_EQ(tasks.num_run, 20);
  workers.post_soon(tasks.task());
  workers.post(tasks.task());
  workers.stop();
  EXPECT_EQ(tasks.num_run, 20);
}

}  // namespace
}  // namespace transept

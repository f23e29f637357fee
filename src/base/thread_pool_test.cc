// The pool runs every task exactly once, on threads that are told apart, and may be used again and again, also after
// its threads have gone to sleep. (TSan reads this file too.)
#include "base/thread_pool.h"

#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "gtest/gtest.h"

namespace transept {
namespace {

TEST(ThreadPool, EveryTaskRunsOnce) {
  for (const int num_threads : {1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), num_threads);
    for (const int64_t num_tasks : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<size_t>(num_tasks), 0);
      pool.parallel_for(num_tasks, [&](int64_t task, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, num_threads);
        ++runs[static_cast<size_t>(task)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(num_tasks), 1)) << num_threads << " " << num_tasks;
    }
  }
}

// What a task wrote is seen by the caller afterwards and by the tasks of the next job: no lost wake-ups, no stale
// reads, over many jobs in close succession.
TEST(ThreadPool, JobsFollowEachOther) {
  constexpr size_t kWidth = 5;
  constexpr int kJobs = 3000;
  ThreadPool pool(3);
  std::vector<int64_t> values(kWidth, 0), next(kWidth, 0);
  for (int job = 0; job < kJobs; ++job) {
    pool.parallel_for(kWidth, [&](int64_t task, int) {
      next[static_cast<size_t>(task)] = values[(static_cast<size_t>(task) + 1) % kWidth] + 1;
    });
    values.swap(next);
  }
  EXPECT_EQ(values, std::vector<int64_t>(kWidth, kJobs));
}

TEST(ThreadPool, NoTwoTasksShareAThreadNumberAtATime) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> shared{false};
  pool.parallel_for(400, [&](int64_t, int thread) {
    auto& mine = inside[static_cast<size_t>(thread)];
    if (mine.fetch_add(1) != 0) shared = true;
    std::this_thread::yield();
    mine.fetch_sub(1);
  });
  EXPECT_FALSE(shared);
}

// The caller's first task waits for all others, those that lie in its own share among them.
TEST(ThreadPool, ThreadsHelpEachOther) {
  for (const int num_threads : {2, 3}) {
    ThreadPool pool(num_threads);
    constexpr int64_t kTasks = 40;
    std::atomic<int64_t> others{0};
    pool.parallel_for(kTasks, [&](int64_t task, int) {
      if (task > 0) {
        ++others;
        return;
      }
      while (others < kTasks - 1) std::this_thread::yield();
    });
    EXPECT_EQ(others, kTasks - 1);
  }
}

TEST(ThreadPool, SleepingThreadsWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t task, int) { sum += task; });
    EXPECT_EQ(sum, 4950);
  }
}

// Whatever numbers follow each other: each task once, on one of the threads that are used, and never two of a call on
// one thread number.
TEST(ThreadPool, UsesTheThreadsThatItIsTold) {
  constexpr int kThreads = 4, kJobs = 2000;
  constexpr int64_t kTasks = 37;
  ThreadPool pool(kThreads);
  EXPECT_EQ(pool.max_threads(), kThreads);
  std::minstd_rand random(5);
  for (int job = 0; job < kJobs; ++job) {
    const int used = 1 + static_cast<int>(random() % kThreads);
    const bool is_slow = job % 20 == 0;  // threads have gone to sleep before, and are there before it ends
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pool.use_threads(used);
    ASSERT_EQ(pool.num_threads(), used);
    std::vector<int> runs(kTasks, 0);
    std::vector<std::atomic<int>> inside(kThreads);
    std::atomic<bool> is_wrong{false};
    pool.parallel_for(kTasks, [&](int64_t task, int thread) {
      if (thread >= used || inside[static_cast<size_t>(thread)].fetch_add(1) != 0) is_wrong = true;
      ++runs[static_cast<size_t>(task)];
      if (is_slow) std::this_thread::sleep_for(std::chrono::microseconds(20));
      inside[static_cast<size_t>(thread)].fetch_sub(1);
    });
    ASSERT_FALSE(is_wrong) << job;
    ASSERT_EQ(runs, std::vector<int>(kTasks, 1)) << job;
  }
  pool.use_threads(1);  // the others end from where they sleep
}

// All threads are there again: a call whose tasks wait for each other ends.
TEST(ThreadPool, UsesMoreThreadsAgain) {
  ThreadPool pool(3);
  for (int i = 0; i < 100; ++i) {
    pool.use_threads(1);
    pool.parallel_for(3, [](int64_t, int thread) { EXPECT_EQ(thread, 0); });
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 2));
    pool.use_threads(3);
    std::atomic<int> arrived{0};
    pool.parallel_for(3, [&](int64_t, int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
  }
}

TEST(ThreadPool, EndsWhetherUsedOrNot) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) pool.parallel_for(2, [](int64_t, int) {});
  }
  EXPECT_GE(num_available_cpus(), 1);
}

}  // namespace
}  // namespace transept

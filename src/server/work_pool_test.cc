// Everything that is posted is done, also what is posted by tasks and at the end.
#include "server/work_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <new>
#include <thread>

namespace transept {
namespace {

// How often threads of this process have gone to sleep.
int64_t num_sleeps() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

// Of 32 threads that wait, one wakes for a task and goes to sleep again, and so does this one.
TEST(WorkPool, ATaskWakesOneThread) {
  for (const auto length : {WorkPool::Length::kShort, WorkPool::Length::kLong}) {
    WorkPool pool(32, 16);
    const auto one = [&] {
      std::promise<void> ran;
      pool.post([&] { ran.set_value(); }, length);
      ran.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // whoever woke in vain sleeps again
    };
    one();
    const int64_t before = num_sleeps();
    for (int i = 0; i < 100; ++i) one();
    EXPECT_LT(num_sleeps() - before, 100 * 8);
  }
}

// Tasks that come before anybody has woken: each finds a thread of its own, of either kind.
TEST(WorkPool, NobodySleepsBesideATask) {
  for (int round = 0; round < 100; ++round) {
    WorkPool pool(4, 2);
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // all sleep
    std::atomic<int> num_running = 0;
    std::promise<void> all_run;
    for (int i = 0; i < 4; ++i) {
      const bool is_long = round % 4 < 2 && i < 2;
      pool.post(
          [&] {
            if (++num_running == 4) all_run.set_value();
            while (num_running < 4) std::this_thread::yield();
          },
          is_long ? WorkPool::Length::kLong : WorkPool::Length::kShort);
    }
    const bool met = all_run.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    EXPECT_TRUE(met);
    if (!met) num_running = 100;  // let go
    pool.stop();
    if (!met) return;
  }
}

TEST(WorkPool, DoesEverythingBeforeItStops) {
  std::atomic<int> done = 0;
  WorkPool pool(3);
  for (int i = 0; i < 100; ++i) {
    pool.post([&] {
      ++done;
      pool.post([&] { ++done; });
    });
  }
  pool.stop();
  EXPECT_EQ(done, 200);
  EXPECT_EQ(pool.num_waiting(), 0u);
}

TEST(WorkPool, RunsAtOnceWhatComesAfterTheEnd) {
  WorkPool pool(1);
  pool.stop();
  bool ran = false;
  pool.post([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(WorkPool, ATaskThatThrowsIsGivenUpAlone) {
  WorkPool pool(1);
  bool ran = false;
  pool.post([] { throw std::bad_alloc(); });
  pool.post([&] { ran = true; });
  pool.stop();
  EXPECT_TRUE(ran);
}

TEST(WorkPool, FirstComeFirstServed) {
  std::vector<int> order;
  WorkPool pool(1);
  for (int i = 0; i < 50; ++i) pool.post([&order, i] { order.push_back(i); });
  pool.stop();
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(WorkPool, ShortTasksOvertakeLongOnes) {
  WorkPool pool(2, 1);
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  std::atomic<int> num_long = 0;
  for (int i = 0; i < 3; ++i) {
    pool.post(
        [&num_long, opened] {
          opened.wait();
          ++num_long;
        },
        WorkPool::Length::kLong);
  }
  std::promise<void> ran;
  pool.post([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(num_long, 0);
  gate.set_value();
  pool.stop();
  EXPECT_EQ(num_long, 3);
}

TEST(WorkPool, AThreadForBothTakesThemAsTheyCame) {
  std::vector<int> order;
  WorkPool pool(1);
  std::promise<void> gate;
  pool.post([&] { gate.get_future().wait(); });
  for (int i = 0; i < 20; ++i) {
    pool.post([&order, i] { order.push_back(i); }, i % 3 == 0 ? WorkPool::Length::kLong : WorkPool::Length::kShort);
  }
  gate.set_value();
  pool.stop();
  ASSERT_EQ(order.size(), 20u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// As many tasks as there are threads that may do them run at once: each post wakes somebody. The tasks meet, which they
// could not if one of them waited for another's end.
TEST(WorkPool, EveryPostWakesAThread) {
  WorkPool pool(4, 1);
  for (int round = 0; round < 200; ++round) {
    const bool is_long = round % 2 == 1;
    const int num_tasks = is_long ? 3 : 4;
    const auto meeting = std::make_shared<std::latch>(num_tasks + 1);
    for (int i = 0; i < num_tasks; ++i) {
      pool.post([meeting] { meeting->arrive_and_wait(); },
                is_long ? WorkPool::Length::kLong : WorkPool::Length::kShort);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (pool.num_waiting() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const size_t num_waiting = pool.num_waiting();
    for (size_t i = 0; i < num_waiting; ++i) meeting->count_down();  // so that the test ends
    ASSERT_EQ(num_waiting, 0u) << "a task waits, and nobody was woken for it; round " << round;
    meeting->arrive_and_wait();
  }
}

}  // namespace
}  // namespace transept

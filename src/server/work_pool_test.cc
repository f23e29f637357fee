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
  WorkPool pool(32);
  const auto one = [&] {
    std::promise<void> ran;
    pool.post([&] { ran.set_value(); });
    ran.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a thread that woke in vain sleeps again
  };
  one();
  const int64_t before = num_sleeps();
  for (int i = 0; i < 100; ++i) one();
  EXPECT_LT(num_sleeps() - before, 100 * 8);
}

// Tasks that come before a thread has woken: each finds a thread of its own.
TEST(WorkPool, NoThreadSleepsBesideATask) {
  for (int round = 0; round < 100; ++round) {
    WorkPool pool(4);
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // all sleep
    std::atomic<int> num_running = 0;
    std::promise<void> all_run;
    for (int i = 0; i < 4; ++i) {
      pool.post([&] {
        if (++num_running == 4) all_run.set_value();
        while (num_running < 4) std::this_thread::yield();
      });
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

// As many tasks as there are threads run at once: each post wakes a thread. The tasks meet, which they could not if one
// of them waited for another's end.
TEST(WorkPool, EveryPostWakesAThread) {
  WorkPool pool(4);
  for (int round = 0; round < 200; ++round) {
    const auto meeting = std::make_shared<std::latch>(5);
    for (int i = 0; i < 4; ++i) pool.post([meeting] { meeting->arrive_and_wait(); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (pool.num_waiting() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    const size_t num_waiting = pool.num_waiting();
    for (size_t i = 0; i < num_waiting; ++i) meeting->count_down();  // so that the test ends
    ASSERT_EQ(num_waiting, 0u) << "a task waits, and no thread was woken for it; round " << round;
    meeting->arrive_and_wait();
  }
}

// Only the threads of a pool with a low priority have one.
TEST(WorkPool, LowPriorityIsThatOfItsThreads) {
  const auto nice_of = [](WorkPool::Priority priority) {
    WorkPool pool(1, priority);
    std::promise<int> nice;
    pool.post([&] { nice.set_value(::getpriority(PRIO_PROCESS, 0)); });
    return nice.get_future().get();
  };
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(nice_of(WorkPool::Priority::kNormal), own);
  EXPECT_EQ(nice_of(WorkPool::Priority::kLow), std::min(19, own + 10));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

}  // namespace
}  // namespace transept

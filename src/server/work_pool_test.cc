// Everything that is posted is done, also what is posted by tasks and at the end.
#include "server/work_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <new>

namespace transept {
namespace {

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

}  // namespace
}  // namespace transept

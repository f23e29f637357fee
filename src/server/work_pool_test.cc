// Everything that is posted is done, also what is posted by tasks and at the end.
#include "server/work_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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

}  // namespace
}  // namespace transept

#include "base/shared_processor.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/cpus.h"

namespace transept {
namespace {

using namespace std::chrono_literals;
using Times = SharedProcessor::Times;

// A thread that looks every 100 us: of each interval it was `delay` without a processor.
class Worker {
 public:
  SharedProcessor::Duration step(SharedProcessor::Duration delay) {
    times_.now += 100us;
    times_.used += 100us - delay;
    times_.run_delay += delay;
    return shared_.rest_at(times_);
  }
  // Returns the number of rests.
  int run(SharedProcessor::Duration length, SharedProcessor::Duration delay) {
    int rests = 0;
    for (auto end = times_.now + length; times_.now < end;) rests += step(delay) > 0ns;
    return rests;
  }
  bool is_shared() const { return shared_.is_shared(); }

 private:
  Times times_;
  SharedProcessor shared_;
};

TEST(SharedProcessor, AloneIsNeverToldToRest) {
  Worker worker;
  EXPECT_EQ(worker.run(1s, 0us), 0);
  EXPECT_EQ(worker.run(1s, 10us), 0) << "a tenth is what a kernel's own threads may take";
  EXPECT_FALSE(worker.is_shared());
}

TEST(SharedProcessor, RestsAfterItsShareOfWorkAndForgetsANeighbourThatLeft) {
  Worker worker;
  worker.run(20ms, 50us);
  EXPECT_TRUE(worker.is_shared());
  // Half of 100 ms is worked, in turns of 500 us.
  EXPECT_NEAR(worker.run(100ms, 50us), 100, 2);
  worker.run(150ms, 0us);
  EXPECT_FALSE(worker.is_shared());
  EXPECT_EQ(worker.run(100ms, 0us), 0);
}

// 4 ms without a processor, in one window or over the border of two, now and then.
TEST(SharedProcessor, AnInterruptionIsNoNeighbour) {
  Worker worker;
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(worker.run(std::chrono::milliseconds(26 + round % 10), 0us), 0);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(worker.step(100us), 0ns);
    EXPECT_FALSE(worker.is_shared());
  }
}

// What lets a neighbour begin to count takes three windows; to go on counting, one is enough.
TEST(SharedProcessor, ANeighbourThatIsKnownMayPause) {
  Worker worker;
  worker.run(9ms, 50us);
  worker.run(11ms, 0us);
  EXPECT_FALSE(worker.is_shared());
  worker.run(20ms, 50us);
  EXPECT_TRUE(worker.is_shared());
  for (int round = 0; round < 5; ++round) {
    worker.run(60ms, 0us);
    worker.run(20ms, 50us);
    EXPECT_TRUE(worker.is_shared());
  }
}

TEST(ThreadTimes, SeeANeighbourOnTheSameProcessor) {
  const std::vector<int> cpus = available_cpus();
  std::atomic<bool> ends{false};
  SharedProcessor::Duration used{}, delay{};
  std::thread busy([&] {
    pin_this_thread(cpus[0]);
    while (!ends) {
    }
  });
  std::thread watcher([&] {
    pin_this_thread(cpus[0]);
    const ThreadTimes times;
    const Times before = times.read();
    while (times.read().now - before.now < 200ms) {
    }
    const Times after = times.read();
    used = after.used - before.used;
    delay = after.run_delay - before.run_delay;
  });
  watcher.join();
  ends = true;
  busy.join();
  if (delay == 0ns) GTEST_SKIP() << "this kernel does not say how long threads wait";
  EXPECT_GT(used, 10ms);
  EXPECT_GT(delay, 30ms);
  EXPECT_LT(used + delay, 400ms);
}

}  // namespace
}  // namespace transept

#include "base/worker_place.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpus.h"

namespace transept {
namespace {

using namespace std::chrono_literals;

// On a thread of its own, whose affinity ends with it. The worker looks every 100 us; the caller is on `cpus[0]`.
class WorkerPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cpus_.size() < 2) GTEST_SKIP() << "one processor leaves nothing to choose";
  }
  void on_worker(FunctionRef<void()> body) {
    std::thread([&] { body(); }).join();
  }

  // `share`: of each interval the caller waits for so much of it.
  void run(SharedProcessor::Duration length, bool is_shared, double share) {
    for (const auto end = now_ + length; now_ < end;) {
      now_ += 100us;
      delay_ += std::chrono::nanoseconds(static_cast<int64_t>(100e3 * share));
      place_.update(now_, is_shared, caller_cpu_, [&] {
        ++num_looks_;
        return delay_;
      });
    }
  }

  std::vector<int> cpus_ = available_cpus();
  int caller_cpu_ = cpus_.empty() ? -1 : cpus_[0];
  int num_looks_ = 0;

 private:
  WorkerPlace place_;
  SharedProcessor::Duration now_ = 10s, delay_{};
};

TEST_F(WorkerPlaceTest, NothingChangesWithoutANeighbour) {
  on_worker([&] {
    run(100ms, false, 0.5);
    EXPECT_EQ(available_cpus(), cpus_);
    EXPECT_EQ(num_looks_, 0);
  });
}

TEST_F(WorkerPlaceTest, KeepsOffTheCallersProcessorWhileShared) {
  on_worker([&] {
    std::vector<int> others(cpus_.begin() + 1, cpus_.end());
    run(100ms, true, 0.1);
    EXPECT_EQ(available_cpus(), others);
    EXPECT_LE(num_looks_, 21) << "one each 5 ms";
    others.front() = std::exchange(caller_cpu_, cpus_[1]);
    run(1ms, true, 0);
    EXPECT_EQ(available_cpus(), others) << "the caller has moved";
    run(1ms, false, 0);
    EXPECT_EQ(available_cpus(), cpus_);
  });
}

TEST_F(WorkerPlaceTest, IsFreeForAWhileIfTheCallerHasANeighbourToo) {
  on_worker([&] {
    run(10ms, true, 0.5);
    EXPECT_EQ(available_cpus().size(), cpus_.size() - 1) << "two windows are not enough";
    run(6ms, true, 0.5);
    EXPECT_EQ(available_cpus(), cpus_);
    run(980ms, true, 0.5);
    EXPECT_EQ(available_cpus(), cpus_);
    run(20ms, true, 0);
    EXPECT_EQ(available_cpus().size(), cpus_.size() - 1) << "tried again";
    run(100ms, true, 0.1);
    EXPECT_EQ(available_cpus().size(), cpus_.size() - 1);
  });
}

TEST_F(WorkerPlaceTest, TheOnlyProcessorStays) {
  on_worker([&] {
    ASSERT_TRUE(pin_this_thread(caller_cpu_));
    run(100ms, true, 0);
    EXPECT_EQ(available_cpus(), std::vector<int>{caller_cpu_});
    EXPECT_EQ(num_looks_, 0);
  });
}

TEST(ThreadTimes, AnotherThreadsDelayIsReadByItsNumber) {
  const std::vector<int> cpus = available_cpus();
  EXPECT_EQ(ThreadTimes::run_delay_of(0), 0ns) << "no thread has this number";
  if (cpus.empty()) GTEST_SKIP() << "the system does not say which processors there are";
  std::atomic<bool> is_done{false};
  SharedProcessor::Duration delay{};
  // Two threads on one processor: each waits for the other.
  std::atomic<int> thread{0};
  const int cpu = cpus[0];
  std::thread other([&] {
    pin_this_thread(cpu);
    thread = gettid();
    while (!is_done) {
    }
  });
  std::thread neighbour([&] {
    pin_this_thread(cpu);
    while (!is_done) {
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (delay < 10ms && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
    if (thread != 0) delay = ThreadTimes::run_delay_of(thread);
  }
  is_done = true;
  other.join();
  neighbour.join();
  EXPECT_GE(delay, 10ms);
}

}  // namespace
}  // namespace transept

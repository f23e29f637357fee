#include "base/caller_distance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace transept {
namespace {

using namespace std::chrono_literals;

CallerDistance after(const std::vector<int>& counts, int num_threads = 2, int num_cpus = 2) {
  CallerDistance distance(num_threads, num_cpus);
  auto now = 5s + 0ns;
  for (const int count : counts) distance.take(now += CallerDistance::kLookEvery, count);
  return distance;
}

TEST(CallerDistance, KeepsOffWithFewerNeighboursThanProcessors) {
  EXPECT_TRUE(after({3, 3, 3, 3}).keeps_off());
  EXPECT_FALSE(after({4, 4, 4, 4}).keeps_off()) << "a neighbour a processor: no place is better";
  EXPECT_FALSE(after({2, 2, 2, 2}).keeps_off()) << "the pool alone";
  EXPECT_TRUE(after({6, 6, 6, 6}, 4, 4).keeps_off());
  EXPECT_FALSE(after({8, 8, 8, 8}, 4, 4).keeps_off());
  EXPECT_FALSE(after({0, 0, 0, 0}).keeps_off()) << "the system does not say";
}

TEST(CallerDistance, DecidesByTheMeanOfSeveralCounts) {
  EXPECT_FALSE(after({3, 3, 3}).keeps_off());
  EXPECT_TRUE(after({3, 3, 3, 3, 3, 3, 5}).keeps_off()) << "one more for a moment";
  EXPECT_FALSE(after({3, 3, 3, 3, 5, 5, 5, 5, 5, 5}).keeps_off());
  std::vector<int> counts(100, 4);
  counts.insert(counts.end(), 20, 3);
  EXPECT_TRUE(after(counts).keeps_off()) << "one has ended";
}

TEST(CallerDistance, CountsOnceAMillisecond) {
  CallerDistance distance(2, 2);
  EXPECT_TRUE(distance.is_due(0ns));
  distance.take(7ms, 3);
  EXPECT_FALSE(distance.is_due(7ms));
  EXPECT_FALSE(distance.is_due(8ms - 1ns));
  EXPECT_TRUE(distance.is_due(8ms));
}

TEST(CallerDistance, ForgetsWhatWas) {
  CallerDistance distance = after({3, 3, 3, 3});
  distance.reset();
  EXPECT_FALSE(distance.keeps_off());
  EXPECT_TRUE(distance.is_due(0ns));
  for (int i = 0; i < 4; ++i) distance.take(i * 1ms, 4);
  EXPECT_FALSE(distance.keeps_off());
}

TEST(RunningThreads, CountsAtLeastThisThreadAndThoseThatItHasStarted) {
  const RunningThreads running;
  EXPECT_GE(running.count(), 1);
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  busy.reserve(20);
  for (int i = 0; i < 20; ++i) {
    busy.emplace_back([&stop] {
      while (!stop) continue;
    });
  }
  int most = 0;
  for (const auto end = std::chrono::steady_clock::now() + 20s; most < 20 && std::chrono::steady_clock::now() < end;) {
    most = std::max(most, running.count());
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_GE(most, 20);
}

}  // namespace
}  // namespace transept

#include "base/mutex.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace transept {
namespace {

constexpr std::chrono::milliseconds kLong{10000};

struct Queue {
  Mutex mutex;
  CondVar changed;
  int num_items ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, HoldsOthersOffUntilTheEndOfTheBlock) {
  Queue queue;
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int j = 0; j < 5000; ++j) {
        const MutexLock lock(queue.mutex);
        ++queue.num_items;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(queue.mutex);
  EXPECT_EQ(queue.num_items, 20000);
}

TEST(CondVarTest, AWaitLetsGoOfTheMutexAndHasItAgain) {
  Queue queue;
  std::thread giver([&] {
    for (int i = 0; i < 100; ++i) {
      const MutexLock lock(queue.mutex);
      while (queue.num_items > 0) queue.changed.wait(queue.mutex);
      ++queue.num_items;
      queue.changed.notify_one();
    }
  });
  for (int i = 0; i < 100; ++i) {
    const auto end = std::chrono::steady_clock::now() + kLong;
    const MutexLock lock(queue.mutex);
    while (queue.num_items == 0 && queue.changed.wait_until(queue.mutex, end)) {
    }
    ASSERT_EQ(queue.num_items, 1);
    --queue.num_items;
    queue.changed.notify_one();
  }
  giver.join();
}

TEST(CondVarTest, AWaitEndsWhenItsTimeHasCome) {
  Queue queue;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  {
    const MutexLock lock(queue.mutex);
    while (queue.changed.wait_until(queue.mutex, end)) {
    }
    EXPECT_GE(std::chrono::steady_clock::now(), end);
  }
  const MutexLock again(queue.mutex);  // the block above has let go of it, once
  EXPECT_EQ(queue.num_items, 0);
}

}  // namespace
}  // namespace transept

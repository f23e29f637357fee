#include "apps/ready_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReadyQueue, GivesAllThatWasPushedAndWaitsOnlyWithoutNews) {
  const std::unique_ptr<ReadyQueue> queue = ReadyQueue::create().value();
  EXPECT_THAT(queue->take(), IsEmpty());
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < 50; ++i) {
    queue->push(i);
    queue->wait(-1);
    queue->push(i + 1);
    queue->wait(-1);  // nobody has taken them
    EXPECT_THAT(queue->take(), ElementsAre(i, i + 1));
  }
  // A wait without news is a tenth of a second: a hundred of them ten.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_THAT(queue->take(), IsEmpty());
  const auto quiet = std::chrono::steady_clock::now();
  queue->wait(-1);
  EXPECT_GE(std::chrono::steady_clock::now() - quiet, std::chrono::milliseconds(90)) << "what was taken is no news";
}

}  // namespace
}  // namespace transept

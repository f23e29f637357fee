// What ranks on one host do besides communicator_test.cc.
#include "comm/shared_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/ranks_testing.h"

namespace transept {
namespace {

using testing::kPatient;
using testing::make_group;

TEST(SharedCommunicator, SendIsAheadByAMailbox) {
  const auto group = make_group(2);
  SharedCommunicator first(*group, 0, kPatient), second(*group, 1, kPatient);
  std::vector<std::byte> sent(100), taken(100);
  for (const int message : {1, 2}) {
    std::ranges::fill(sent, static_cast<std::byte>(message));
    ASSERT_TRUE(first.send(1, sent).ok());  // on one thread: it does not wait
  }
  for (const int message : {1, 2}) {
    ASSERT_TRUE(second.recv(0, taken).ok());
    EXPECT_EQ(taken, std::vector(100, static_cast<std::byte>(message)));
  }
}

TEST(SharedCommunicator, TheTimeLimitCanChange) {
  const auto group = make_group(2);
  SharedCommunicator first(*group, 0, kPatient);
  first.set_rank_timeout(std::chrono::milliseconds(20));
  EXPECT_TRUE(absl::IsUnavailable(first.barrier()));
}

TEST(SharedCommunicator, ALongErrorIsCut) {
  const auto group = make_group(2);
  SharedCommunicator first(*group, 0, kPatient);
  first.fail(invalid_argument(std::string(10'000, 'x')));
  EXPECT_EQ(group->rank(1).num_calls, 0u) << "which lies behind";
  const std::string message = error_message(first.barrier());
  EXPECT_GT(message.size(), 400u);
  EXPECT_EQ(message, std::string(message.size(), 'x'));
}

}  // namespace
}  // namespace transept

// Proves what ranks settle while they load: the least of what each has, and the name of what differs, on all of them.
#include "rank/rank_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "comm/ranks_testing.h"

namespace transept {
namespace {

TEST(RankAgreement, TheLeastIsAllRanks) {
  constexpr std::array<uint64_t, 4> kHas = {70, UINT64_MAX, 50, 51};
  const auto group = testing::make_group(4);
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    const StatusOr<uint64_t> least = least_of_ranks(ranks, kHas[static_cast<size_t>(ranks.rank())]);
    ASSERT_TRUE(least.ok()) << least.status();
    EXPECT_EQ(*least, 50u);
  });
}

TEST(RankAgreement, WhatDiffersIsNamedOnAllRanks) {
  for (int other = -1; other < 3; ++other) {
    const auto group = testing::make_group(3);
    testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
      const int64_t blocks = ranks.rank() == other ? 8 : 9;
      const Status status = check_agreement(ranks, std::array<AgreedNumber, 2>{{{"width", 4}, {"blocks", blocks}}});
      if (other < 0) {
        EXPECT_TRUE(status.ok()) << status;
      } else {
        EXPECT_THAT(error_message(status), ::testing::HasSubstr("blocks is"));
        EXPECT_THAT(error_message(status), ::testing::HasSubstr(str_cat("on rank ", std::max(other, 1))));
      }
    });
  }
}

TEST(RankAgreement, AFailedGroupIsTheError) {
  const auto group = testing::make_group(2);
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    if (ranks.rank() == 1) return ranks.fail(absl::UnavailableError("gone"));
    EXPECT_EQ(error_message(least_of_ranks(ranks, 1).status()), "gone");
    EXPECT_EQ(error_message(check_agreement(ranks, std::array<AgreedNumber, 1>{{{"width", 4}}})), "gone");
  });
}

}  // namespace
}  // namespace transept

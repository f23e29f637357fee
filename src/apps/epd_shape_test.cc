// Shapes of fleets are read as they are written, and instances get cores of their own while there are enough.
#include "apps/epd_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

using Cores = std::vector<std::vector<int>>;

TEST(EpdShape, IsReadInAnyCase) {
  for (const auto& [text, num_encode, num_decode] :
       {std::tuple("1E1D", 1, 1), std::tuple("2e1D", 2, 1), std::tuple("1E2d", 1, 2), std::tuple("64e64d", 64, 64),
        std::tuple("01E01D", 1, 1)}) {
    const StatusOr<EpdShape> shape = parse_epd_shape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(*shape, (EpdShape{num_encode, num_decode})) << text;
  }
  EXPECT_EQ((EpdShape{2, 13}.text()), "2E13D");
}

TEST(EpdShape, WhatIsNoneIsRefusedByItsFlag) {
  for (const char* text : {"", "1", "E", "1X", "1E", "E1D", "1ED", "1D1E", "1P1D", "1E1D ", " 1E1D", "1E 1D", "-1E1D",
                           "+1E1D", "1E1D1D", "1.5E1D", "1E1P1D", "1E1\n"}) {
    const Status status = parse_epd_shape(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(error_message(status), ::testing::HasSubstr("expected numbers of encode and of decode instances"));
  }
  EXPECT_EQ(error_message(parse_epd_shape("0E1D").status()), "--epd 0E1D: at least one instance of each is needed");
  EXPECT_EQ(error_message(parse_epd_shape("1E0D").status()), "--epd 1E0D: at least one instance of each is needed");
  EXPECT_EQ(error_message(parse_epd_shape("65E1D").status()), "--epd 65E1D: at most 64 instances of each");
  EXPECT_THAT(error_message(parse_epd_shape("1E99999999999999999999D").status()),
              ::testing::EndsWith("at most 64 instances of each"));
  EXPECT_EQ(error_message(parse_epd_shape("\x1b[31m").status()).find('\x1b'), std::string::npos);
}

TEST(EpdThreads, AreTwoNumbers) {
  EXPECT_EQ(parse_epd_threads("1,2").value(), (EpdThreads{1, 2}));
  EXPECT_EQ(parse_epd_threads("1024,1024").value(), (EpdThreads{1024, 1024}));
  for (const char* text : {"", "1", ",", "1,", ",1", "0,1", "1,0", "1025,1", "1,1025", "1,1,1", "1;1", "a,b", "1, 1",
                           "-1,1", "99999999999,1", "1,1x"}) {
    const Status status = parse_epd_threads(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(error_message(status), StartsWith(str_cat("--epd-threads ", text, ": expected threads")));
  }
}

// "e0 1 0": name, threads, processors.
std::vector<std::string> planned(const EpdShape& shape, const std::optional<EpdThreads>& threads, int32_t num_cpus,
                                 const Cores& cores) {
  std::vector<std::string> lines;
  for (const EpdInstance& instance : plan_epd(shape, threads, num_cpus, cores)) {
    const InstanceRole role = instance.name[0] == 'e' ? InstanceRole::kEncode : InstanceRole::kDecode;
    EXPECT_EQ(instance.role, role);
    lines.push_back(str_cat(instance.name, " ", instance.num_threads, " ", instance.cpus));
  }
  return lines;
}

const Cores kFour = {{0}, {1}, {2}, {3}};
const Cores kFourOfTwo = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};  // hyper-threads

TEST(PlanEpd, ProcessorsAreDividedAmongAll) {
  EXPECT_THAT(planned({1, 1}, {}, 2, {{0}, {1}}), ElementsAre("e0 1 0", "p0 1 1"));
  EXPECT_THAT(planned({1, 1}, {}, 4, kFour), ElementsAre("e0 2 0-1", "p0 2 2-3"));
  EXPECT_THAT(planned({2, 1}, {}, 4, kFour), ElementsAre("e0 1 0", "e1 1 1", "p0 1 2"));
  EXPECT_THAT(planned({1, 2}, {}, 4, kFour), ElementsAre("e0 1 0", "p0 1 1", "p1 1 2"));
}

TEST(PlanEpd, ThreadsMayBeGiven) {
  EXPECT_THAT(planned({1, 1}, EpdThreads{1, 3}, 4, kFour), ElementsAre("e0 1 0", "p0 3 1-3"));
  EXPECT_THAT(planned({2, 1}, EpdThreads{1, 2}, 4, kFour), ElementsAre("e0 1 0", "e1 1 1", "p0 2 2-3"));
}

TEST(PlanEpd, WithTooFewProcessorsNobodyIsPinned) {
  EXPECT_THAT(planned({1, 1}, {}, 1, {{0}}), ElementsAre("e0 1 none", "p0 1 none"));
  EXPECT_THAT(planned({1, 1}, EpdThreads{2, 3}, 4, kFour), ElementsAre("e0 2 none", "p0 3 none"));
  EXPECT_THAT(planned({1, 1}, {}, 0, {}), ElementsAre("e0 1 none", "p0 1 none"));
  EXPECT_THAT(planned({1, 1}, {}, 8, {}), ElementsAre("e0 4 none", "p0 4 none"));
}

TEST(PlanEpd, HyperThreadsOfACoreAreOfOneInstance) {
  // One processor a core while cores suffice.
  EXPECT_THAT(planned({1, 1}, EpdThreads{2, 2}, 8, kFourOfTwo), ElementsAre("e0 2 0-1", "p0 2 2-3"));
  // Both of a core otherwise.
  EXPECT_THAT(planned({1, 1}, {}, 8, kFourOfTwo), ElementsAre("e0 4 0-1,4-5", "p0 4 2-3,6-7"));
  EXPECT_THAT(planned({1, 1}, EpdThreads{1, 5}, 8, kFourOfTwo), ElementsAre("e0 1 0", "p0 5 1-3,5-6"));
  // Three cores cannot be halved, but six processors can.
  EXPECT_THAT(planned({1, 1}, {}, 6, {{0, 3}, {1, 4}, {2, 5}}), ElementsAre("e0 3 0,3,1", "p0 3 4,2,5"));
  EXPECT_THAT(planned({1, 1}, {}, 2, {{0, 1}}), ElementsAre("e0 1 0", "p0 1 1"));
}

}  // namespace
}  // namespace transept

#include "base/checked_math.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, OverflowIsNothing) {
  EXPECT_EQ(checked_add<int64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add<int64_t>(-kMax, -2), std::nullopt);
  EXPECT_EQ(checked_add<uint32_t>(0xFFFFFFFFu, 1), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_mul<int64_t>(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(0, kMax), 0);
}

TEST(CheckedMath, CeilDiv) {
  // FACTS.md: cross blocks of encoder lengths at block size 16.
  const std::pair<int64_t, int64_t> cases[] = {{0, 0},    {1, 1},    {15, 1},   {16, 1},    {17, 2},   {160, 10},
                                               {161, 11}, {200, 13}, {500, 32}, {1000, 63}, {1500, 94}};
  for (const auto& [tokens, blocks] : cases) EXPECT_EQ(ceil_div(tokens, 16), blocks) << tokens;
  EXPECT_EQ(round_up(17, 16), 32);
  EXPECT_EQ(round_up(32, 16), 32);
}

TEST(ParseBytes, UnitsAndFractions) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("1000000"), 1000000u);
  EXPECT_EQ(*parse_bytes("256KiB"), uint64_t{256} << 10);
  EXPECT_EQ(*parse_bytes("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(*parse_bytes("4G"), uint64_t{4} << 30);
  EXPECT_EQ(*parse_bytes("4 g"), uint64_t{4} << 30);
  EXPECT_EQ(*parse_bytes("2TB"), 2000000000000u);
  EXPECT_EQ(*parse_bytes("10kb"), 10000u);
  EXPECT_EQ(*parse_bytes("7B"), 7u);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text :
       {"", "G", "-1", "-1G", "1X", "1GiBs", "nan", "inf", "1e30", "9e18", "1e3000", "0x10", "1 2", " 1"}) {
    const StatusOr<uint64_t> bytes = parse_bytes(text);
    EXPECT_FALSE(bytes.ok()) << text;
    if (!bytes.ok()) {
      EXPECT_THAT(error_message(bytes.status()), HasSubstr(text)) << text;
    }
  }
}

}  // namespace
}  // namespace transept

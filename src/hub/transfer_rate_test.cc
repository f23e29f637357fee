#include "hub/transfer_rate.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

using std::chrono::milliseconds;

TEST(TransferRateTest, IsThatOfTheLastSeconds) {
  TransferRate rate;
  const TimePoint begin{};
  EXPECT_EQ(rate.bytes_per_second(), 0);
  rate.add(begin, 0);
  EXPECT_EQ(rate.bytes_per_second(), 0);
  rate.add(begin + milliseconds(50), 1000);
  EXPECT_EQ(rate.bytes_per_second(), 0) << "too short to say";
  for (int i = 1; i <= 100; ++i) rate.add(begin + milliseconds(100 * i), 100 * i);
  EXPECT_NEAR(rate.bytes_per_second(), 1000, 1);
  // Ten times as fast from the tenth second on: after five more seconds nothing of the old rate is left.
  for (int i = 101; i <= 160; ++i) rate.add(begin + milliseconds(100 * i), 10'000 + 1000 * (i - 100));
  EXPECT_NEAR(rate.bytes_per_second(), 10'000, 1);
}

TEST(TransferRateTest, ManyNotesOfOneMomentAreOne) {
  TransferRate rate;
  const TimePoint begin{};
  for (int i = 0; i <= 100'000; ++i) rate.add(begin + std::chrono::microseconds(10 * i), i);
  EXPECT_NEAR(rate.bytes_per_second(), 100'000, 1000);
}

TEST(TransferRateTest, BytesThatComeAgainAreNoNegativeRate) {
  TransferRate rate;
  rate.add(TimePoint{}, 1000);
  rate.add(TimePoint{} + milliseconds(500), 0);
  EXPECT_EQ(rate.bytes_per_second(), 0);
}

TEST(TransferRateTest, Text) {
  EXPECT_EQ(progress_text(0, 0, 0), "0 B");
  EXPECT_EQ(progress_text(1536, 0, 0), "1.5 KiB");
  EXPECT_EQ(progress_text(1536, 3072, 512), "1.5 KiB of 3.0 KiB, 512 B/s, 3 s left");
  EXPECT_EQ(progress_text(3072, 3072, 512), "3.0 KiB of 3.0 KiB, 512 B/s");
  EXPECT_EQ(progress_text(0, 3072 * 60, 512), "0 B of 180 KiB, 512 B/s, 6 min left");
  EXPECT_EQ(progress_text(-5, 1024, 0), "0 B of 1.0 KiB");
}

}  // namespace
}  // namespace transept

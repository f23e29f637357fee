#include "load/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace transept {
namespace {

std::vector<double> gaps_of(double rate, uint64_t seed, int count) {
  Arrivals arrivals(rate, seed);
  std::vector<double> gaps;
  Duration last{};
  for (int i = 0; i < count; ++i) {
    const Duration due = arrivals.next();
    gaps.push_back(seconds(due - last));
    last = due;
  }
  return gaps;
}

// An exponential distribution of mean m: its variance is m^2, and a share of 1 - 1/e lies below m.
TEST(ArrivalsTest, GapsAreExponentialOfTheRate) {
  constexpr int kCount = 100000;
  constexpr double kRate = 50;
  double sum = 0, squares = 0;
  int num_below = 0;
  for (const double gap : gaps_of(kRate, 7, kCount)) {
    ASSERT_GE(gap, 0);
    sum += gap * kRate;
    squares += gap * kRate * gap * kRate;
    num_below += gap * kRate < 1 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 1, 0.02);
  EXPECT_NEAR(squares / kCount - 1, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(num_below) / kCount, 1 - std::exp(-1.0), 0.01);
}

TEST(ArrivalsTest, TheSeedDecides) {
  EXPECT_EQ(gaps_of(3, 1, 50), gaps_of(3, 1, 50));
  EXPECT_NE(gaps_of(3, 1, 50), gaps_of(3, 2, 50));
}

TEST(ArrivalsTest, AllAtOnceIsNow) {
  for (const double gap : gaps_of(Arrivals::kAllAtOnce, 1, 10)) EXPECT_EQ(gap, 0);
}

}  // namespace
}  // namespace transept

// Expected numbers are numpy.percentile's (its default, linear).
#include "load/statistics.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(StatisticsTest, PercentilesAreNumpys) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);  // in no order
  const Statistics of = statistics_of(values);
  EXPECT_EQ(of.count, 100u);
  EXPECT_DOUBLE_EQ(of.mean, 50.5);
  EXPECT_DOUBLE_EQ(of.p50, 50.5);
  EXPECT_DOUBLE_EQ(of.p90, 90.1);
  EXPECT_DOUBLE_EQ(of.p95, 95.05);
  EXPECT_DOUBLE_EQ(of.p99, 99.01);
  EXPECT_DOUBLE_EQ(of.max, 100);
}

TEST(StatisticsTest, FewValues) {
  EXPECT_EQ(statistics_of({}).count, 0u);
  const Statistics one = statistics_of({4});
  EXPECT_EQ(one.mean, 4);
  EXPECT_EQ(one.p50, 4);
  EXPECT_EQ(one.p99, 4);
  EXPECT_EQ(one.max, 4);
  EXPECT_DOUBLE_EQ(statistics_of({1, 3}).p90, 2.8);
}

}  // namespace
}  // namespace transept

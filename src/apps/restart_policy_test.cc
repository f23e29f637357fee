// A process that dies is started again after 1, 2, 4, 8 and 10 seconds, and not a sixth time within a minute.
#include "apps/restart_policy.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kBegin = TimePoint(seconds(1000));

TEST(RestartPolicy, DelaysDoubleUpToTheLongest) {
  RestartPolicy policy{RestartLimits{}};
  TimePoint now = kBegin;
  for (const int delay : {1, 2, 4, 8, 10}) {
    const std::optional<TimePoint> at = policy.on_death(now);
    ASSERT_TRUE(at.has_value()) << delay;
    EXPECT_EQ(*at - now, seconds(delay));
    now = *at + milliseconds(10);
  }
  EXPECT_FALSE(policy.on_death(now).has_value());
}

TEST(RestartPolicy, StartsOfMoreThanAWindowAgoDoNotCount) {
  RestartPolicy policy{RestartLimits{.max_restarts = 2}};
  ASSERT_EQ(policy.on_death(kBegin), kBegin + seconds(1));
  ASSERT_EQ(policy.on_death(kBegin + seconds(30)), kBegin + seconds(32));
  // The first start was at 1 s, and counts until 61 s.
  EXPECT_EQ(policy.on_death(kBegin + seconds(61) - milliseconds(1)), std::nullopt);
  EXPECT_EQ(policy.on_death(kBegin + seconds(61)), kBegin + seconds(63));
  EXPECT_EQ(policy.on_death(kBegin + seconds(91)), std::nullopt);
}

TEST(RestartPolicy, WhoRunsLongStartsAgainAtOnceForEver) {
  RestartPolicy policy{RestartLimits{}};
  for (int i = 0; i < 100; ++i) {
    const TimePoint now = kBegin + i * seconds(3600);
    ASSERT_EQ(policy.on_death(now), now + seconds(1)) << i;
  }
}

TEST(RestartPolicy, NoneMayBeAllowed) {
  RestartPolicy policy{RestartLimits{.max_restarts = 0}};
  EXPECT_EQ(policy.on_death(kBegin), std::nullopt);
}

}  // namespace
}  // namespace transept

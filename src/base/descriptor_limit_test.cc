#include "base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace transept {
namespace {

TEST(DescriptorLimit, TheSoftOneBecomesTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
    rlimit now{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
    EXPECT_EQ(now.rlim_cur, before.rlim_max);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace transept

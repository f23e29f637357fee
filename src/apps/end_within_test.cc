#include "apps/end_within.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace transept {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(EndWithin, LeavesAProcessAloneThatIsInTime) {
  bool has_spoken = false;
  const auto begin = std::chrono::steady_clock::now();
  {
    const EndWithin end(hours(1), [&] { return has_spoken = true, 3; });
  }
  EXPECT_FALSE(has_spoken);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1)) << "it waited for nothing";
}

TEST(EndWithinDeathTest, EndsAProcessThatIsNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const EndWithin end(milliseconds(20), [] {
          std::fputs("last words\n", stderr);
          return 7;
        });
        std::this_thread::sleep_for(hours(1));  // as a thread that computes
      },
      ::testing::ExitedWithCode(7), "last words");
}

}  // namespace
}  // namespace transept

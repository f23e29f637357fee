#include "base/recent_set.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(RecentSet, KeepsWhatWasInsertedLast) {
  RecentSet<int> set(3);
  for (const int value : {1, 2, 3}) set.insert(value);
  EXPECT_TRUE(set.contains(1) && set.contains(2) && set.contains(3));
  set.insert(1);
  EXPECT_TRUE(set.contains(1)) << "inserted again, it outlives its first place";
  set.insert(4);
  EXPECT_FALSE(set.contains(2));
  EXPECT_TRUE(set.contains(3) && set.contains(1) && set.contains(4));
  set.insert(4);
  set.insert(4);
  EXPECT_FALSE(set.contains(1));
  EXPECT_TRUE(set.contains(4));
  set.clear();
  EXPECT_FALSE(set.contains(4));
}

}  // namespace
}  // namespace transept

#include "base/quoted.h"

#include "gtest/gtest.h"

namespace transept {
namespace {

TEST(Quoted, ShortTextsAreWholeAndLongOnesAreCutBehindACharacter) {
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("de"), "\"de\"");
  EXPECT_EQ(quoted("abcd", 4), "\"abcd\"");
  EXPECT_EQ(quoted("abcde", 4), "\"abcd...\" (5 bytes)");
  EXPECT_EQ(quoted("abc\u00e9f", 4), "\"abc...\" (6 bytes)");
  EXPECT_EQ(quoted(std::string(1'000'000, 'e'), 3), "\"eee...\" (1000000 bytes)");
  EXPECT_EQ(quoted("\xff"), "\"\uFFFD\"");
  EXPECT_EQ(quoted("\xff\xff\xff", 2), "\"\uFFFD\uFFFD...\" (3 bytes)");
}

}  // namespace
}  // namespace transept

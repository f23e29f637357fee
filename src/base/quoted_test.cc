#include "base/quoted.h"

#include "gtest/gtest.h"

namespace transept {
namespace {

TEST(Quoted, ShortTextsAreWholeAndLongOnesAreCutBehindACharacter) {
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("de"), "\"de\"");
  EXPECT_EQ(in_quotes("abcd", 4), "\"abcd\"");
  EXPECT_EQ(in_quotes("abcde", 4), "\"abcd...\" (5 bytes)");
  EXPECT_EQ(in_quotes("abc\u00e9f", 4), "\"abc...\" (6 bytes)");
  EXPECT_EQ(in_quotes(std::string(1'000'000, 'e'), 3), "\"eee...\" (1000000 bytes)");
  EXPECT_EQ(in_quotes("\xff"), "\"\uFFFD\"");
  EXPECT_EQ(in_quotes("\xff\xff\xff", 2), "\"\uFFFD\uFFFD...\" (3 bytes)");
}

// A terminal obeys them: colours, titles, what was printed before.
TEST(Quoted, ControlCharactersAreEscapes) {
  EXPECT_EQ(in_quotes("a\x1b[31m\x07\x7f\u009b\u00a0\r\n\t"), "\"a\\x1b[31m\\x07\\x7f\\x9b\u00a0\\x0d\\n\\t\"");
  EXPECT_EQ(in_quotes(std::string("\0\x1b", 2), 1), "\"\\x00...\" (2 bytes)");
  EXPECT_EQ(printable("\xc3\xa4 \x1b]0;x\x07\n\tb\xff\xc2\x85"), "\u00e4 \\x1b]0;x\\x07\n\tb\uFFFD\\x85");
}

}  // namespace
}  // namespace transept

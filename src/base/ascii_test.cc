// Letters become small, and nothing else changes: neither the letters' neighbours in ASCII nor bytes of UTF-8.
#include "base/ascii.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(AsciiTest, LettersBecomeSmallAndNothingElse) {
  static_assert(ascii_lower('A') == 'a' && ascii_lower('Z') == 'z' && ascii_lower('a') == 'a');
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool is_capital = byte >= 65 && byte <= 90;
    EXPECT_EQ(ascii_lower(c), is_capital ? static_cast<char>(byte + 32) : c) << byte;
  }
}

TEST(AsciiTest, WholeTextsKeepTheirLengthAndTheirUtf8) {
  EXPECT_EQ(ascii_lower(""), "");
  EXPECT_EQ(ascii_lower("@AZ[`az{ 0-9"), "@az[`az{ 0-9");
  EXPECT_EQ(ascii_lower("\xC3\x84 Stra\xC3\x9F"
                        "E \xC4\xB0"),
            "\xC3\x84 stra\xC3\x9F"
            "e \xC4\xB0");
  EXPECT_EQ(ascii_lower(std::string_view("A\0B", 3)), std::string_view("a\0b", 3));
}

}  // namespace
}  // namespace transept

// The vectors of RFC 4648, section 10, and what is no base64.
#include "base/base64.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(Base64Test, WritesTheVectorsOfTheStandard) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(encode_base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode_base64(std::string("\xFB\xFF\xBF\x00\x00\xFF", 6)), "+/+/AAD/");
}

TEST(Base64Test, ReadsTheVectorsOfTheStandard) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(decode_base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("+/+/AAD/"), std::string("\xFB\xFF\xBF\x00\x00\xFF", 6));
}

TEST(Base64Test, ReadsAllBytesAtAllLengths) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes) << i;
    bytes.push_back(static_cast<char>(i * 167 + i / 7));
  }
}

TEST(Base64Test, RefusesACharacterWhereverItStands) {
  const std::string good = encode_base64(std::string(40, 'x'));
  for (size_t i = 0; i < good.size() - 2; ++i) {
    for (const char wrong : {'\0', ' ', '=', '-', '\x7F', '\x80', '\xFF'}) {
      std::string text = good;
      text[i] = wrong;
      EXPECT_EQ(decode_base64(text), std::nullopt) << i;
    }
  }
}

TEST(Base64Test, RefusesEverythingElse) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg==Zg==", "=", "====", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zm-_", "Zm9\xC3"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace transept

#include "text/subword/byte_token.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(ByteTokenTest, EveryByteIsReadBack) {
  EXPECT_EQ(byte_token(0x0A), "<0x0A>");
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(parse_byte_token(byte_token(static_cast<uint8_t>(byte))), static_cast<uint8_t>(byte));
  }
  EXPECT_EQ(parse_byte_token("<0xe2>"), 0xE2);
}

TEST(ByteTokenTest, OtherTokensAreNone) {
  for (const char* token : {"", "<0x0A", "<0x0A>>", "<0xG0>", "<0x0G>", "<0X0A>", "0x0A>>", "<1x0A>", "<0x0A)"}) {
    EXPECT_FALSE(parse_byte_token(token).has_value()) << token;
  }
}

}  // namespace
}  // namespace transept

#include "base/content_hash.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace transept {
namespace {

// Words 0 and 1 as SipHash's authors print them: bytes, lowest first.
std::string printed(const ContentHash& hash) {
  std::string text;
  for (size_t i = 0; i < 16; ++i) {
    const uint64_t byte = hash.words[i / 8] >> (i % 8 * 8) & 0xFF;
    text += "0123456789ABCDEF"[byte / 16];
    text += "0123456789ABCDEF"[byte % 16];
  }
  return text;
}

// The vectors of the reference implementation, as `openssl mac -macopt hexkey:000102...0e0f -macopt size:16 SIPHASH`
// (OpenSSL 3.0) gives them for the bytes 0, 1, 2, ...
TEST(ContentHash, IsSipHash) {
  const ContentHashKey key{{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
  const std::vector<std::pair<size_t, std::string>> vectors = {
      {0, "A3817F04BA25A8E66DF67214C7550293"},  {1, "DA87C1D86B99AF44347659119B22FC45"},
      {7, "A1F1EBBED8DBC153C0B84AA61FF08239"},  {8, "3B62A9BA6258F5610F83E264F31497B4"},
      {9, "264499060AD9BAABC47F8B02BB6D71ED"},  {15, "5493E99933B0A8117E08EC0F97CFC3D9"},
      {16, "6EE2A4CA67B054BBFD3315BF85230577"}, {63, "5150D1772F50834A503E069A973FBD7C"}};
  for (const auto& [size, expected] : vectors) {
    std::vector<std::byte> content;
    for (size_t i = 0; i < size; ++i) content.push_back(static_cast<std::byte>(i));
    const ContentHash hash = content_hash(key, content);
    EXPECT_EQ(printed(hash), expected) << size;
    EXPECT_EQ(hash.words[2], size);
    EXPECT_EQ(hash.words[3], 0u);
  }
}

TEST(ContentHash, KeysAreDrawn) { EXPECT_NE(ContentHashKey::random().words, ContentHashKey::random().words); }

}  // namespace
}  // namespace transept

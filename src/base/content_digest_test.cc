// Proves the digest against FIPS 180-4's vectors and Python's hashlib, and that lists of texts are told apart.
#include "base/content_digest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

std::string of_bytes(const std::string& content) {
  DigestBuilder builder;
  builder.add_bytes(std::as_bytes(std::span(content)));
  return digest_hex(builder.finish());
}

TEST(ContentDigest, IsSha256) {
  EXPECT_EQ(of_bytes(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of_bytes("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // hashlib.sha256(bytes(i % 251 for i in range(100000)))
  std::string long_content;
  for (int i = 0; i < 100000; ++i) long_content += static_cast<char>(i % 251);
  const std::string of_long = "cd2df694e424bc7968cc37f47751019e5ca0cd1bdf2e479ea537c3a1c32ee1aa";
  EXPECT_EQ(of_bytes(long_content), of_long);
  DigestBuilder in_pieces;
  for (size_t at = 0; at < long_content.size(); at += 777) {
    in_pieces.add_bytes(std::as_bytes(std::span(long_content).subspan(at, std::min<size_t>(777, 100000 - at))));
  }
  EXPECT_EQ(digest_hex(in_pieces.finish()), of_long);
}

// hashlib.sha256(struct.pack("<qq", -2, 3) + b"abc")
TEST(ContentDigest, NumbersAndTextsAreBytesInOneOrder) {
  DigestBuilder builder;
  builder.add_number(-2);
  builder.add_text("abc");
  EXPECT_EQ(digest_hex(builder.finish()), "6e3ec60e7539b3207f81ffe833d5ddb702bf58ceefa235baf1a4af117d97ce11");
}

TEST(ContentDigest, ListsOfTextsAreToldApart) {
  const auto of_texts = [](const std::vector<std::string>& texts) {
    DigestBuilder builder;
    for (const std::string& text : texts) builder.add_text(text);
    return builder.finish();
  };
  EXPECT_EQ(of_texts({"ab", "c"}), of_texts({"ab", "c"}));
  EXPECT_NE(of_texts({"ab", "c"}), of_texts({"a", "bc"}));
  EXPECT_NE(of_texts({"ab", "c"}), of_texts({"abc"}));
  EXPECT_NE(of_texts({"ab", ""}), of_texts({"ab"}));
}

}  // namespace
}  // namespace transept

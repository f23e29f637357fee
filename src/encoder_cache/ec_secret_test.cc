// HMAC against RFC 4231's vectors and Python's hmac, and which files are taken for secrets.
#include "encoder_cache/ec_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hex(const EcMac& mac) {
  std::string text;
  for (const std::byte byte : mac) {
    text += "0123456789abcdef"[static_cast<size_t>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<size_t>(byte) & 15];
  }
  return text;
}

TEST(EcSecret, IsHmacSha256CutToItsFirstHalf) {
  // RFC 4231: test cases 1, 3, and 6, whose key is longer than a block.
  const EcSecret first(bytes(std::string(20, '\x0b')));
  EXPECT_EQ(hex(first.mac({bytes("Hi There")})), "b0344c61d8db38535ca8afceaf0bf12b");
  const EcSecret third(bytes(std::string(20, '\xaa')));
  EXPECT_EQ(hex(third.mac({bytes(std::string(50, '\xdd'))})), "773ea91e36800e46854db8ebd09181a7");
  const EcSecret sixth(bytes(std::string(131, '\xaa')));
  const std::string_view text = "Test Using Larger Than Block-Size Key - Hash Key First";
  EXPECT_EQ(hex(sixth.mac({bytes(text)})), "60e431591ee0b67f0d8a26aacbf5b77f");
  EXPECT_EQ(hex(sixth.mac({bytes(text.substr(0, 7)), {}, bytes(text.substr(7))})), hex(sixth.mac({bytes(text)})));
  // hmac.digest(b"k" * 4096, b"", "sha256")[:16].hex()
  EXPECT_EQ(hex(EcSecret(bytes(std::string(4096, 'k'))).mac({})), "37685ef528979892595008b5772c8b6d");
}

TEST(EcSecret, VerifiesEveryBitOfACode) {
  const EcSecret secret(bytes("0123456789abcdef")), other(bytes("0123456789abcdeF"));
  const EcMac mac = secret.mac({bytes("text")});
  EXPECT_TRUE(secret.verifies(mac, {bytes("te"), bytes("xt")}));
  EXPECT_FALSE(secret.verifies(mac, {bytes("texT")}));
  EXPECT_FALSE(other.verifies(mac, {bytes("text")}));
  for (size_t bit = 0; bit < 8 * mac.size(); ++bit) {
    EcMac forged = mac;
    forged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(secret.verifies(forged, {bytes("text")})) << bit;
  }
}

TEST(EcSecret, ThreadsShareOne) {
  const EcSecret secret(bytes("0123456789abcdef"));
  const EcMac mac = secret.mac({bytes("text")});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) EXPECT_TRUE(secret.verifies(mac, {bytes("text")}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class EcSecretFileTest : public ::testing::Test {
 protected:
  // "": the secret is taken, and is `secret`. Else the error.
  std::string read(std::string_view content, std::string_view secret = "", mode_t mode = 0600) {
    folder_.write("secret", content);
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return check(EcSecret::read(path_), secret);
  }
  static std::string check(const StatusOr<EcSecret>& read, std::string_view secret) {
    if (!read.ok()) return error_message(read.status());
    EXPECT_EQ(read->mac({bytes("x")}), EcSecret(bytes(secret)).mac({bytes("x")}));
    return "";
  }

  testing::TestFolder folder_;
  const std::string path_ = folder_.path() + "/secret";
};

TEST_F(EcSecretFileTest, OneEndOfLineIsNotPartOfIt) {
  EXPECT_EQ(read("0123456789abcdef", "0123456789abcdef"), "");
  EXPECT_EQ(read("0123456789abcdef\n", "0123456789abcdef"), "");
  EXPECT_EQ(read("0123456789abcdef\n\n", "0123456789abcdef\n"), "");
  EXPECT_EQ(read("0123456789abcdef\r\n", "0123456789abcdef\r"), "");
  EXPECT_EQ(read(std::string(16, '\0'), std::string(16, '\0')), "") << "bytes, not text";
}

TEST_F(EcSecretFileTest, SizesHaveLimits) {
  EXPECT_THAT(read(""), HasSubstr(path_ + ": has a secret of 0 bytes; 16 to 4096"));
  EXPECT_THAT(read("\n"), HasSubstr("has a secret of 0 bytes"));
  EXPECT_THAT(read("0123456789abcde\n"), HasSubstr("has a secret of 15 bytes"));
  EXPECT_EQ(read(std::string(4096, 's') + "\n", std::string(4096, 's')), "");
  EXPECT_THAT(read(std::string(4097, 's')), HasSubstr("has a secret of 4097 bytes"));
  EXPECT_THAT(read(std::string(4097, 's') + "\n"), HasSubstr("has a secret of 4098 bytes"));
}

TEST_F(EcSecretFileTest, OtherUsersMayNotOpenIt) {
  const std::string secret = "0123456789abcdef";
  for (const mode_t mode : {0600, 0400, 0700}) EXPECT_EQ(read(secret, secret, mode), "") << mode;
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0601}) {
    EXPECT_THAT(read(secret, secret, mode), HasSubstr(path_ + ": is open to other users")) << mode;
  }
}

TEST_F(EcSecretFileTest, ErrorsNameTheFileAndNotItsBytes) {
  EXPECT_THAT(check(EcSecret::read(folder_.path()), ""), HasSubstr(folder_.path() + ": is not a regular file"));
  EXPECT_EQ(EcSecret::read(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(read("hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(read("hunter2hunter2hunter2", "", 0644), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace transept

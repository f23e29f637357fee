// Codes, and which files are taken for secrets.
#include "encoder_cache/ec_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/folder_testing.h"
#include "encoder_cache/broker.h"

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
  const EcSecret secret(bytes(std::string(20, '\xaa')));  // test case 3 of RFC 4231
  EXPECT_EQ(hex(secret.mac({bytes(std::string(50, '\xdd'))})), "773ea91e36800e46854db8ebd09181a7");
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

class EcSecretFileTest : public ::testing::Test {
 protected:
  // "": the secret is taken, and is `secret`. Else the error.
  std::string read(std::string_view content, std::string_view secret = "", mode_t mode = 0600, uid_t owner = kUser) {
    folder_.write("secret", content);
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown(path_.c_str(), owner, 0), 0);
    }
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return check(EcSecret::read(path_), secret);
  }
  static std::string check(const StatusOr<EcSecret>& read, std::string_view secret) {
    if (!read.ok()) return error_message(read.status());
    EXPECT_EQ(read->mac({bytes("x")}), EcSecret(bytes(secret)).mac({bytes("x")}));
    return "";
  }

  static constexpr uid_t kUser = 1000;  // the owner, where the test may choose one

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

TEST_F(EcSecretFileTest, TheGroupMayReadOneOfRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of root";
  const std::string secret = "0123456789abcdef";
  for (const mode_t mode : {0440, 0640, 0600}) EXPECT_EQ(read(secret, secret, mode, 0), "") << mode;
  for (const mode_t mode : {0604, 0444, 0660, 0610, 0601}) {
    EXPECT_THAT(read(secret, secret, mode, 0), HasSubstr(path_ + ": is open to other users")) << mode;
  }
}

TEST_F(EcSecretFileTest, ErrorsNameTheFileAndNotItsBytes) {
  EXPECT_THAT(check(EcSecret::read(folder_.path()), ""), HasSubstr(folder_.path() + ": is not a regular file"));
  EXPECT_EQ(EcSecret::read(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(read("hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(read("hunter2hunter2hunter2", "", 0644), Not(HasSubstr("hunter2")));
}

TEST(EcSecret, MarksAreThoseOfTheSecret) {
  const EcSecret one(bytes("0123456789abcdef")), same(bytes("0123456789abcdef")), other(bytes("0123456789abcdeg"));
  EXPECT_EQ(one.mark(), same.mark());
  EXPECT_NE(one.mark(), other.mark());
  EXPECT_EQ(one.mark().size(), InstanceRecord::kMaxMarkBytes);
}

TEST(EcSecret, EachHasAQueueOfItsOwn) {
  const EcSecret one(bytes("0123456789abcdef")), other(bytes("0123456789abcdeg"));
  ModelFingerprint model, next;
  next.bytes[31] = std::byte{1};
  EXPECT_EQ(queue_of(model, nullptr), model);
  EXPECT_NE(queue_of(model, &one), model);
  EXPECT_NE(queue_of(model, &one), queue_of(model, &other));
  EXPECT_NE(queue_of(model, &one), queue_of(next, &one));
}

}  // namespace
}  // namespace transept

// Proves the codes against RFC 4231's vectors and Python's hmac.
#include "base/hmac_sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/content_digest.h"

namespace transept {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hex(const HmacSha256::Code& code) { return digest_hex({code}); }

TEST(HmacSha256, IsThatOfRfc4231) {
  const HmacSha256 first(bytes(std::string(20, '\x0b')));  // test cases 1, 2, 3; 6's key is longer than a block
  EXPECT_EQ(hex(first.code({bytes("Hi There")})), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  const HmacSha256 second(bytes("Jefe"));
  EXPECT_EQ(hex(second.code({bytes("what do ya want for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const HmacSha256 third(bytes(std::string(20, '\xaa')));
  EXPECT_EQ(hex(third.code({bytes(std::string(50, '\xdd'))})),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  const HmacSha256 sixth(bytes(std::string(131, '\xaa')));
  const std::string_view text = "Test Using Larger Than Block-Size Key - Hash Key First";
  const std::string of_text = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
  EXPECT_EQ(hex(sixth.code({bytes(text)})), of_text);
  EXPECT_EQ(hex(sixth.code({bytes(text.substr(0, 7)), {}, bytes(text.substr(7))})), of_text);
  // hmac.digest(b"k" * 4096, b"", "sha256").hex()
  EXPECT_EQ(hex(HmacSha256(bytes(std::string(4096, 'k'))).code({})),
            "37685ef528979892595008b5772c8b6d710db07bd8995d71a7cf8ce0db0dd17b");
}

TEST(HmacSha256, ThreadsShareAKey) {
  const HmacSha256 key(bytes("0123456789abcdef"));
  const auto code = key.code({bytes("text")});
  std::vector<std::thread> threads(4);
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(key.code({bytes("te"), bytes("xt")}), code);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HmacSha256, ComparesEveryBit) {
  HmacSha256::Code code{};
  const HmacSha256::Code same = code;
  EXPECT_TRUE(equal_in_constant_time(code, same));
  EXPECT_TRUE(equal_in_constant_time({}, {}));
  for (size_t bit = 0; bit < 8 * code.size(); ++bit) {
    code = same;
    code[bit / 8] = static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(equal_in_constant_time(code, same)) << bit;
  }
}

TEST(HmacSha256, WipesAll) {
  std::vector<std::byte> secret(100, std::byte{7});
  wipe(std::span(secret).subspan(1, 98));
  EXPECT_EQ(std::ranges::count(secret, std::byte{7}), 2);
}

}  // namespace
}  // namespace transept

// Memory for the codes of lossless WebP: what files ask for, and files that ask for gigabytes.
#include "media/webp_lossless.h"

#include <gmock/gmock.h>

#include "media/image_encoders_testing.h"
#include "media/image_testing.h"
#include "media/webp_bits_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

size_t code_bytes(std::string_view bits, int32_t width, int32_t height) {
  const StatusOr<size_t> bytes = lossless_code_bytes(bytes_of_text(bits), width, height);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or(0);
}

TEST(WebpLossless, OneGroup) {
  WebpBits bits;
  bits.put(0, 1);  // no transform
  bits.put(0, 1);  // no cache
  bits.put(0, 1);  // one group
  bits.put_plain_group();
  EXPECT_LT(code_bytes(bits.bytes(), 100, 100), 400u << 10);
}

TEST(WebpLossless, GroupsAreCounted) {
  const size_t one = code_bytes(webp_with_groups(1), 4096, 4096);
  const size_t hundred = code_bytes(webp_with_groups(100), 4096, 4096);
  const size_t all = code_bytes(webp_with_groups(65536), 4096, 4096);
  EXPECT_GT(hundred - one, 99u * 11000);
  EXPECT_GT(all, size_t{700} << 20);
  EXPECT_LT(all, size_t{2} << 30);
}

// A picture of few pixels has few groups, whatever numbers they have.
TEST(WebpLossless, NumbersWithoutPixelsCostNothing) {
  EXPECT_LT(code_bytes(webp_with_groups(65536), 16, 16), 2u << 20);
}

TEST(WebpLossless, CacheCosts) {
  WebpBits bits;
  bits.put(0, 1);
  bits.put(1, 1);
  bits.put(11, 4);  // 2048 colors
  bits.put(0, 1);
  EXPECT_GE(code_bytes(bits.bytes(), 100, 100), 2u * 4 * 2048);
}

TEST(WebpLossless, TransformsArePassedOver) {
  WebpBits bits;
  bits.put(1, 1);
  bits.put(0, 2);  // predictors
  bits.put(3, 3);  // of 32 x 32 pixels
  bits.put_picture(4 * 4);
  bits.put(1, 1);
  bits.put(2, 2);  // subtract green
  bits.put(1, 1);
  bits.put(3, 2);  // a palette
  bits.put(1, 8);  // of two colors: eight pixels are one
  bits.put_picture(2);
  bits.put(0, 1);
  bits.put(0, 1);
  bits.put(1, 1);  // groups, of 4 x 4 pixels of what is left: 4 x 32
  bits.put(0, 3);
  bits.put_picture(4 * 32, 199);
  const size_t bytes = code_bytes(bits.bytes(), 128, 128);
  EXPECT_GT(bytes, 2u * 200 * 11000);
  EXPECT_LT(bytes, 2u * 202 * 14000);
}

TEST(WebpLossless, Flaws) {
  const auto reason = [](const WebpBits& bits) {
    const StatusOr<size_t> bytes = lossless_code_bytes(bytes_of_text(bits.bytes()), 64, 64);
    return bytes.ok() ? "" : error_message(bytes.status());
  };
  WebpBits twice;
  for (int i = 0; i < 2; ++i) {
    twice.put(1, 1);
    twice.put(2, 2);
  }
  EXPECT_THAT(reason(twice), HasSubstr("contradict themselves")) << "a transform comes once";
  for (const uint32_t cache_bits : {0u, 12u, 15u}) {
    WebpBits bits;
    bits.put(0, 1);
    bits.put(1, 1);
    bits.put(cache_bits, 4);
    bits.put(0, 64);
    EXPECT_THAT(reason(bits), HasSubstr("contradict themselves")) << cache_bits;
  }
  WebpBits crowded;
  crowded.put(0b100, 3);  // no transform, no cache, groups
  crowded.put(0, 3);
  crowded.put(0, 1);   // no cache
  crowded.put(0, 1);   // a code with lengths
  crowded.put(15, 4);  // all 19 of them
  for (int i = 0; i < 19; ++i) crowded.put(1, 3);
  crowded.put(0, 64);
  EXPECT_THAT(reason(crowded), HasSubstr("contradict themselves"));
  EXPECT_THAT(error_message(lossless_code_bytes({}, 64, 64).status()), HasSubstr("ends early"));
}

// The bits of a real file, cut everywhere and flipped: an answer in time.
TEST(WebpLossless, CutAndFlipped) {
  constexpr int32_t kSide = 220;
  const std::string file = encode_webp(make_photo(kSide, kSide), WebpKind::kLossless);
  const std::string bits = file.substr(12 + 8 + 5);
  const size_t whole = code_bytes(bits, kSide, kSide);
  size_t num_cut = 0;
  for (size_t size = 0; size < std::min<size_t>(bits.size(), 3000); ++size) {
    const auto bytes = lossless_code_bytes(bytes_of_text(std::string_view(bits).substr(0, size)), kSide, kSide);
    num_cut += bytes.ok() ? 0 : 1;
    ASSERT_EQ(bytes.ok(), size >= num_cut) << "where it is known, it stays so";
    ASSERT_TRUE(!bytes.ok() || *bytes == whole);
  }
  EXPECT_GT(num_cut, 20u);
  for (size_t bit = 0; bit < 8 * num_cut; ++bit) {
    std::string damaged = bits;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    (void)lossless_code_bytes(bytes_of_text(damaged), kSide, kSide);
  }
}

}  // namespace
}  // namespace transept

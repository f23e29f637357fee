// UTF-8 decoding against the rules of the WHATWG decoder (one U+FFFD for each maximal invalid piece; the cases of the
// Unicode standard, chapter 3, table 3-8 and D93b).
#include "base/utf8.h"

#include "gtest/gtest.h"

namespace transept {
namespace {

constexpr char kFffd[] = "\xEF\xBF\xBD";

std::string repeat(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += kFffd;
  return out;
}

TEST(Utf8, EveryCodePointReadsBack) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string bytes;
    append_utf8(bytes, c);
    const Utf8Step step = read_utf8(bytes);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kValid) << c;
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(static_cast<size_t>(step.num_bytes), bytes.size());
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(read_utf8(std::string_view(bytes).substr(0, cut)).kind, Utf8Step::Kind::kIncomplete) << c;
    }
  }
}

TEST(Utf8, KnownBytes) {
  std::string out;
  for (const uint32_t c : {0x24u, 0xA2u, 0x20ACu, 0x10348u}) append_utf8(out, c);
  EXPECT_EQ(out, "\x24\xC2\xA2\xE2\x82\xAC\xF0\x90\x8D\x88");
}

TEST(Utf8, MaximalInvalidPieces) {
  EXPECT_EQ(sanitize_utf8("a\x80"
                          "b"),
            "a" + repeat(1) + "b");
  EXPECT_EQ(sanitize_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                          "A"),
            repeat(8) + "A");  // overlong forms, byte by byte
  EXPECT_EQ(sanitize_utf8("\xED\xA0\x80\xED\xBF\xBF"
                          "A"),
            repeat(6) + "A");  // surrogates
  EXPECT_EQ(sanitize_utf8("\xF4\x91\x92\x93\xFF"
                          "A\x80\xBF"
                          "B"),
            repeat(5) + "A" + repeat(2) + "B");
  EXPECT_EQ(sanitize_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                          "A"),
            repeat(4) + "A");                                    // cut short: one each
  EXPECT_EQ(sanitize_utf8("ok\xF0\x9F\x98"), "ok" + repeat(1));  // cut at the end
}

TEST(Utf8, IncompleteOnlyWhileItCanBecomeValid) {
  EXPECT_EQ(read_utf8("\xF0\x9F\x98").kind, Utf8Step::Kind::kIncomplete);
  EXPECT_EQ(read_utf8("\xF0\x9F\x98").num_bytes, 3);
  EXPECT_EQ(read_utf8("\xF0\x80").kind, Utf8Step::Kind::kInvalid);
  EXPECT_EQ(read_utf8("\xF0\x9F"
                      "a")
                .kind,
            Utf8Step::Kind::kInvalid);
  EXPECT_EQ(read_utf8("\xF0\x9F"
                      "a")
                .num_bytes,
            2);
  EXPECT_EQ(read_utf8("\xFF").kind, Utf8Step::Kind::kInvalid);
}

TEST(Utf8, Validity) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(
      is_valid_utf8("stra\xC3\x9F"
                    "e"));
  EXPECT_FALSE(is_valid_utf8("\xC3"));
  EXPECT_FALSE(is_valid_utf8("\xC3("));
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
}

}  // namespace
}  // namespace transept

// The two ways of reading SentencePiece's table of replacements, and tables that are damaged.
#include "text/unicode/precompiled_charsmap.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "text/text_testing.h"

namespace transept {
namespace {

// The table that tools/sentencepiece_cases.py writes (RULES).
std::string small_table() {
  const Json tokenizer = tokenizer_json(read_fixtures("sentencepiece.jsonl"), "t5");
  const Json& steps = member(member(tokenizer, "normalizer"), "normalizers");
  return decode_base64(member(steps.as_array()[0], "precompiled_charsmap").as_string()).value_or("");
}

std::string by_graphemes(const PrecompiledCharsmap& map, std::string_view text) {
  std::string out;
  EXPECT_TRUE(map.append_by_graphemes(text, out).ok());
  return out;
}

TEST(PrecompiledCharsmapTest, TheLongestRuleAndTheShortest) {
  const auto map = PrecompiledCharsmap::parse(small_table());
  ASSERT_TRUE(map.ok()) << map.status();
  const auto longest = map->longest("ﾊﾞx");
  ASSERT_TRUE(longest.has_value());
  EXPECT_EQ(longest->length, 6u);
  EXPECT_EQ(longest->replacement, "バ");
  const auto shortest = map->shortest("ﾊﾞx");
  ASSERT_TRUE(shortest.has_value());
  EXPECT_EQ(shortest->length, 3u);
  EXPECT_EQ(shortest->replacement, "ハ");
  EXPECT_EQ(map->longest("\u00ADx")->replacement, "");
  EXPECT_FALSE(map->longest("x").has_value());
  EXPECT_FALSE(map->longest("").has_value());
  EXPECT_FALSE(map->longest(std::string_view("\0", 1)).has_value());
  EXPECT_FALSE(PrecompiledCharsmap().longest("a").has_value());
}

// Answers of tokenizers' normalizers.Precompiled.
TEST(PrecompiledCharsmapTest, GraphemesAsTokenizersReadsThem) {
  const auto map = PrecompiledCharsmap::parse(small_table());
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(by_graphemes(*map, "ﾊﾞ"), "ハ\u3099") << "six bytes: character by character";
  EXPECT_EQ(by_graphemes(*map, "e\u0301\u0323x"), "éx") << "what the rule does not know of a short grapheme is lost";
  EXPECT_EQ(by_graphemes(*map, "\r\nx"), " x") << "a line's end is one grapheme, and \\r a rule";
  EXPECT_EQ(by_graphemes(*map, "a\u0301"), "a\u0301");
  EXPECT_EQ(by_graphemes(*map, ""), "");
}

void put_u32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

TEST(PrecompiledCharsmapTest, DamagedTablesAreRefused) {
  const auto message = [](std::string_view bytes) { return error_message(PrecompiledCharsmap::parse(bytes).status()); };
  const std::string good = small_table();
  EXPECT_EQ(message(good), "");
  EXPECT_EQ(message("abc"), "ends inside the trie's size");
  EXPECT_EQ(message(good.substr(0, 100)).substr(0, 9), "a trie of");
  EXPECT_EQ(message(std::string(8, '\0')), "a trie of 0 bytes is said to be in 4");
  EXPECT_EQ(message(std::string(PrecompiledCharsmap::kMaxBytes + 1, '\0')),
            "4194305 bytes are more than the 4194304 allowed");
  std::string far;
  put_u32(far, 4);
  put_u32(far, 0xFFFFFC00);
  EXPECT_EQ(message(far), "its trie points outside of itself");
  const uint32_t trie_bytes = static_cast<uint8_t>(good[0]) | uint32_t{static_cast<uint8_t>(good[1])} << 8;
  EXPECT_EQ(message(good.substr(0, 4 + trie_bytes)), "its trie points outside of the replacements");
  std::string latin1 = good;
  latin1.back() = '\xE9';
  EXPECT_EQ(message(latin1), "its replacements are not valid UTF-8");
}

// Whatever parse() lets pass can be searched: the sanitizers watch.
TEST(PrecompiledCharsmapTest, RandomDamageNeverLeavesTheTable) {
  const std::string good = small_table();
  std::mt19937 random(2);
  int num_parsed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto map = PrecompiledCharsmap::parse(bytes);
    if (!map.ok()) continue;
    ++num_parsed;
    for (int texts = 0; texts < 10; ++texts) {
      const std::string text = random_text(random, 20);
      for (size_t i = 0; i < text.size(); ++i) map->longest(text.substr(i));
      std::string out;
      map->append_by_graphemes(text, out).IgnoreError();
    }
  }
  EXPECT_GT(num_parsed, 100);
}

}  // namespace
}  // namespace transept

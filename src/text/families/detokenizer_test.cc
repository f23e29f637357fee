// Text that grows with each token is at every moment the decoded whole, and never broken UTF-8.
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "text/families/tokenizer_testing.h"

namespace transept {
namespace {

// One token a byte, so that characters come in halves; id 256 is special, and "<s>".
class ByteTokenizer final : public Tokenizer {
 public:
  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
    return ids;
  }
  void append_bytes(std::span<const int32_t>, int32_t token_id, std::string& out) const override {
    if (token_id >= 0 && token_id < 256) out.push_back(static_cast<char>(token_id));
    if (token_id == 256) out += "<s>";
  }
  std::string token_to_string(int32_t) const override { return ""; }
  std::optional<int32_t> string_to_token(std::string_view) const override { return std::nullopt; }
  bool is_special(int32_t token_id) const override { return token_id == 256; }
  int32_t vocab_size() const override { return 257; }
};

std::vector<int32_t> bytes(std::string_view text) { return *ByteTokenizer().encode(text, {}); }

TEST(DetokenizerTest, HoldsHalfACharacterBack) {
  const ByteTokenizer tokenizer;
  IncrementalDetokenizer text(tokenizer, {}, true);
  std::vector<std::string> seen;
  for (const int32_t id : bytes("aé👍")) {
    text.append(id);
    seen.push_back(text.text());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "a", "aé", "aé", "aé", "aé", "aé👍"}));
}

TEST(DetokenizerTest, InvalidPiecesBecomeOneReplacementAsSoonAsTheyCannotBeSaved) {
  const ByteTokenizer tokenizer;
  IncrementalDetokenizer text(tokenizer, {}, true);
  for (const int32_t id : bytes("\xF0\x9F")) text.append(id);
  EXPECT_EQ(text.text(), "");
  text.append('x');
  EXPECT_EQ(text.text(), "\uFFFDx");
  for (const int32_t id : bytes("\xC3\x28\x80\xE2\x82")) text.append(id);
  EXPECT_EQ(text.text(), "\uFFFDx\uFFFD(\uFFFD");
  text.finish();
  EXPECT_EQ(text.text(), "\uFFFDx\uFFFD(\uFFFD\uFFFD");
}

TEST(DetokenizerTest, SpecialTokensAreSkippedOrShown) {
  const ByteTokenizer tokenizer;
  IncrementalDetokenizer skipping(tokenizer, {}, true);
  IncrementalDetokenizer showing(tokenizer, {}, false);
  for (const int32_t id : {int32_t{'a'}, 256, int32_t{'b'}}) {
    skipping.append(id);
    showing.append(id);
  }
  EXPECT_EQ(skipping.text(), "ab");
  EXPECT_EQ(showing.text(), "a<s>b");
}

TEST(DetokenizerTest, TheTextBeginsBehindThePrompt) {
  const ByteTokenizer tokenizer;
  IncrementalDetokenizer text(tokenizer, bytes("prompt"), true);
  text.append('x');
  EXPECT_EQ(text.text(), "x");
}

// decode(prompt) shows the half as one character, so whatever it becomes is the prompt's.
TEST(DetokenizerTest, HalfACharacterAtThePromptsEndBelongsToThePrompt) {
  const ByteTokenizer tokenizer;
  for (const std::string_view rest : {"\x91\x8Dx", "x", "\x91x"}) {
    const std::vector<int32_t> prompt = bytes("a\xF0\x9F");
    IncrementalDetokenizer text(tokenizer, prompt, true);
    for (const int32_t id : bytes(rest)) text.append(id);
    text.finish();
    EXPECT_EQ(text.text(), "x") << rest;
  }
}

// Where every byte that is no UTF-8 shows as one character, the prompt's text has one for each, and what comes of them
// is less as many.
TEST(DetokenizerTest, HalfACharacterOfByteTokensCountsByBytes) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture(read_fixtures("sentencepiece.jsonl"), "umt5");
  ASSERT_NE(tokenizer, nullptr);
  const int32_t f0 = *tokenizer->string_to_token("<0xF0>"), x9f = *tokenizer->string_to_token("<0x9F>");
  const int32_t a = *tokenizer->string_to_token("a"), space_a = *tokenizer->string_to_token("▁a");
  const std::vector<int32_t> half = {space_a, f0, x9f};
  EXPECT_EQ(tokenizer->decode(half, false), "a\uFFFD\uFFFD");
  IncrementalDetokenizer text(*tokenizer, half, false);
  text.append(a);
  text.append(f0);
  text.append(space_a);
  EXPECT_EQ(text.text(), "a\uFFFD a");
}

// A word start keeps its space behind a prompt, and loses it at the very beginning.
TEST(DetokenizerTest, AWordStartKeepsItsSpaceBehindAPrompt) {
  const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture(read_fixtures("sentencepiece.jsonl"), "t5");
  ASSERT_NE(tokenizer, nullptr);
  const int32_t the = *tokenizer->string_to_token("▁the"), pad = *tokenizer->string_to_token("<pad>");
  for (const bool has_prompt : {false, true}) {
    const std::vector<int32_t> prompt = has_prompt ? std::vector<int32_t>{pad, the} : std::vector<int32_t>{pad};
    IncrementalDetokenizer text(*tokenizer, prompt, /*skip_special_tokens=*/true);
    text.append(the);
    text.append(pad);
    text.append(the);
    EXPECT_EQ(text.text(), has_prompt ? " the the" : "the the");
  }
}

void expect_equal_to_the_whole(const std::vector<Json>& fixtures, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Tokenizer> tokenizer = make_json_fixture(fixtures, name);
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
      const bool skip = round % 2 == 0;
      const std::vector<int32_t> ids = random_ids(random, *tokenizer, 40);
      IncrementalDetokenizer text(*tokenizer, {}, skip);
      std::string before;
      for (size_t i = 0; i < ids.size(); ++i) {
        text.append(ids[i]);
        ASSERT_TRUE(text.text().starts_with(before)) << "text that was given is never taken back";
        before = text.text();
        const std::string whole = tokenizer->decode(std::span(ids).first(i + 1), skip);
        IncrementalDetokenizer finished = text;
        finished.finish();
        ASSERT_EQ(finished.text(), whole);
        ASSERT_TRUE(is_valid_utf8(text.text()));
        // What is held back shows in the whole as replacements.
        ASSERT_TRUE(whole.starts_with(text.text()));
        std::string_view rest = std::string_view(whole).substr(text.text().size());
        size_t num_held_back = 0;
        for (; rest.starts_with(kReplacementUtf8); ++num_held_back) rest.remove_prefix(kReplacementUtf8.size());
        ASSERT_EQ(rest, "");
        ASSERT_LE(num_held_back, tokenizer->replaces_each_byte() ? 3u : 1u);
      }
    }
  }
}

TEST(DetokenizerTest, EqualsTheDecodedWholeAfterEveryToken) {
  expect_equal_to_the_whole(read_fixtures("tokenizers.jsonl"), {"gpt2", "added_tokens", "characters", "byte_fallback"});
  const std::vector<Json> fixtures = read_fixtures("sentencepiece.jsonl");
  std::vector<std::string> names;
  for (const Json& fixture : fixtures) names.push_back(member(fixture, "name").as_string());
  expect_equal_to_the_whole(fixtures, names);
}

}  // namespace
}  // namespace transept

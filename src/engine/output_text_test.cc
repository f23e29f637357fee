// Proves what a text ends with, and is searched for, while its tokenizer may still take its end back.
#include "engine/output_text.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

// Token 0 is "ab@@", which is "ab" if another token follows, as BlenderbotSmall's; token 1 is "c".
class JoiningTokenizer final : public Tokenizer {
 public:
  StatusOr<std::vector<int32_t>> encode(std::string_view, const EncodeOptions&) const override {
    return invalid_argument("not here");
  }
  void append_bytes(std::span<const int32_t>, int32_t token_id, std::string& out) const override {
    out += token_id == 0 ? "ab" : "c";
  }
  void append_end(std::span<const int32_t> token_ids, std::string& out) const override {
    if (!token_ids.empty() && token_ids.back() == 0) out += "@@";
  }
  std::string token_to_string(int32_t token_id) const override { return token_id == 0 ? "ab@@" : "c"; }
  std::optional<int32_t> string_to_token(std::string_view) const override { return std::nullopt; }
  bool is_special(int32_t) const override { return false; }
  int32_t vocab_size() const override { return 2; }
};

struct Written {
  std::string text;
  FinishReason reason = FinishReason::kNone;
  size_t num_tokens = 0;
};

Written write(const std::vector<int32_t>& ids, const SamplingParams& params) {
  const JoiningTokenizer tokenizer;
  OutputText text(&tokenizer, {}, params);
  Written written;
  for (const int32_t id : ids) {
    written.reason = text.append(params, id, static_cast<int32_t>(++written.num_tokens));
    if (written.reason != FinishReason::kNone) break;
  }
  if (written.reason == FinishReason::kNone) text.finish();
  written.text = text.text();
  return written;
}

SamplingParams stopping_at(const std::string& stop) {
  SamplingParams params;
  params.max_tokens = 10;
  params.stop = {stop};
  return params;
}

TEST(OutputTextTest, AnEndThatWasTakenBackWasNeverThere) {
  EXPECT_EQ(write({0, 1}, stopping_at("x")).text, "abc");
  EXPECT_EQ(write({0, 1, 0}, stopping_at("x")).text, "abcab@@");
}

TEST(OutputTextTest, AStopStringIsFoundInWhatTheTextEndsWithForNow) {
  const Written written = write({1, 0, 1}, stopping_at("b@"));
  EXPECT_EQ(written.reason, FinishReason::kStop);
  EXPECT_EQ(written.num_tokens, 2u);
  EXPECT_EQ(written.text, "ca");
  SamplingParams included = stopping_at("b@");
  included.include_stop_str_in_output = true;
  EXPECT_EQ(write({1, 0, 1}, included).text, "cab@");
}

TEST(OutputTextTest, AStopStringAcrossAnEndThatWasTakenBackIsFound) {
  const Written written = write({0, 1, 1}, stopping_at("bc"));
  EXPECT_EQ(written.num_tokens, 2u);
  EXPECT_EQ(written.text, "a");
}

}  // namespace
}  // namespace transept

// Formats log-probabilities as OpenAI's completions do: {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
// and as its chats do: {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "core/request_output.h"
#include "text/tokenizer.h"

namespace transept {

// Counts the Unicode code points of UTF-8 text.
size_t count_characters(std::string_view text);

// Borrows the tokenizer (null: the texts of tokens are ""). Immutable: thread-safe.
class CompletionLogprobs final {
 public:
  explicit CompletionLogprobs(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Formats the log-probabilities of `output`. *text_offset is the number of characters before the first of its tokens;
  // it advances past the last. If two tokens of a position have the same text, top_logprobs has the first of the two.
  // Values below -9999 become -9999: JSON has no infinity. REQUIRES: output.logprobs has a value.
  Json to_json(const CompletionOutput& output, int64_t* text_offset) const;

  // The same for a chat, with the `num_top` best tokens of each position. REQUIRES: output.logprobs has a value.
  Json to_chat_json(const CompletionOutput& output, int32_t num_top) const;

  std::function<std::string(int32_t)> token_text() const;  // id -> text; borrows the tokenizer alone

 private:
  Json chat_token(int32_t token_id, const TokenLogprob* logprob) const;

  const Tokenizer* tokenizer_;
};

}  // namespace transept

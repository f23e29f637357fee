// Log-probabilities as OpenAI's completions show them: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "core/request_output.h"
#include "text/tokenizer.h"

namespace transept {

// Unicode code points.
size_t count_characters(std::string_view text);

// Immutable: thread-safe. Borrows the tokenizer (null: tokens have no text).
class CompletionLogprobs final {
 public:
  explicit CompletionLogprobs(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // REQUIRES: output.logprobs has a value. *text_offset: characters before the first of these tokens; moves behind the
  // last. Two tokens of one position that have the same text: the likelier one is shown. -infinity is shown as -9999,
  // which JSON has.
  Json to_json(const CompletionOutput& output, int64_t* text_offset) const;

  std::function<std::string(int32_t)> token_text() const;

 private:
  const Tokenizer* tokenizer_;
};

}  // namespace transept

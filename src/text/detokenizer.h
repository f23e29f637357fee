// Text of a growing list of ids, one token at a time, equal at every moment to the decoded whole: incomplete UTF-8 is
// held back until it is complete or cannot become so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace transept {

// Not thread-safe; one an output sequence. Borrows the tokenizer.
class IncrementalDetokenizer final {
 public:
  // The text begins after `prompt_token_ids`: decode(prompt + generated) less as many characters as decode(prompt) has.
  IncrementalDetokenizer(const Tokenizer& tokenizer, std::span<const int32_t> prompt_token_ids,
                         bool skip_special_tokens);

  // Appends what the token makes final to text().
  void append(int32_t token_id);

  // No token will follow: bytes still held back become U+FFFD.
  void finish();

  const std::string& text() const { return text_; }

  // Whether the text would end with something that the next token may take back (Tokenizer::append_end).
  bool has_end() const;

 private:
  // Makes every complete character of pending_ final.
  void emit_complete();
  void emit(std::string_view character);
  // How many characters stand for `num_bytes` bytes that are no UTF-8.
  size_t num_replacements(size_t num_bytes) const;

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  size_t num_prompt_characters_ = 0;  // decode(prompt) has as many that are not final: the next to come
  std::vector<int32_t> token_ids_;    // the prompt's and the generated ones that show in the text
  bool finished_ = false;
  std::string pending_;  // an incomplete character
  std::string text_;
};

}  // namespace transept

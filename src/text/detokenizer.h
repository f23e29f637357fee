// Decodes a growing list of ids, one token at a time. text() never changes what it has shown, and after finish() equals
// the decoded whole. Until then it holds back incomplete UTF-8, and an end that the next token may take back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace transept {

// Not thread-safe; one per output sequence. Borrows the tokenizer.
class IncrementalDetokenizer final {
 public:
  // text() begins after the prompt: it is decode(prompt + generated) without as many characters as decode(prompt) has.
  IncrementalDetokenizer(const Tokenizer& tokenizer, std::span<const int32_t> prompt_token_ids,
                         bool skip_special_tokens);

  // Appends to text() what the token makes final. Ignores ids out of range and, with skip_special_tokens, special ones.
  void append(int32_t token_id);

  // Call when no token follows: appends the end of the text, and U+FFFD for bytes still held back. Later calls do
  // nothing.
  void finish();

  const std::string& text() const { return text_; }

  // Whether the text so far has an end that the next token may take back (Tokenizer::append_end).
  bool has_end() const;

 private:
  // Moves complete characters out of pending_, and U+FFFD for bytes that cannot become one.
  void emit_complete();
  void emit(std::string_view character);
  // The number of U+FFFD for `num_bytes` bytes that are not UTF-8.
  size_t num_replacements(size_t num_bytes) const;

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  size_t num_prompt_characters_ = 0;  // characters of decode(prompt) that are not final yet: the next to come
  std::vector<int32_t> token_ids_;    // those that show in the text, of the prompt and generated
  bool finished_ = false;
  std::string pending_;  // an incomplete character
  std::string text_;
};

}  // namespace transept

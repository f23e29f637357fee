// Splits a text into the words that a model encodes one by one. Immutable, so thread-safe. Source: pre_tokenizers/ of
// Hugging Face's tokenizers.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/subword_model.h"
#include "text/unicode/search_budget.h"

namespace transept {

class PreTokenizer final {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    // Splits each word further; may rewrite the text. Errors: as PreTokenizer::split.
    virtual Status apply(Words& words, SearchBudget& budget) const = 0;
    // Whether the step depends on Words::at_front.
    virtual bool asks_for_front() const { return false; }
  };

  // Makes the whole text one word.
  PreTokenizer() = default;

  // Parses the member "pre_tokenizer" of a tokenizer.json (null: none): Sequence, ByteLevel, Metaspace, Split,
  // Whitespace, WhitespaceSplit, Digits, Punctuation, BertPreTokenizer; 64 steps at most. `add_prefix_space`, if set,
  // overrides that of a ByteLevel at the top, as tokenizer_config.json does. Errors name the field; another type is
  // kUnimplemented, by name.
  static StatusOr<PreTokenizer> parse(const JsonField& field, std::optional<bool> add_prefix_space);

  // ByteLevel with GPT-2's pattern.
  static PreTokenizer byte_level(bool add_prefix_space);

  // Whether split() depends on `at_front`.
  bool asks_for_front() const { return asks_for_front_; }

  // `at_front`: no text comes before this one. REQUIRES and errors: as Normalizer::apply.
  StatusOr<Words> split(std::string_view text, bool at_front, SearchBudget& budget) const;

 private:
  Status append(const JsonField& field, std::optional<bool> add_prefix_space);

  std::vector<std::unique_ptr<Step>> steps_;
  bool asks_for_front_ = false;
};

}  // namespace transept

// Splits a text into the words that a model sees one by one. Immutable, so thread-safe.
// Source: pre_tokenizers/ of Hugging Face's tokenizers.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/search_budget.h"
#include "text/subword_model.h"

namespace transept {

class PreTokenizer final {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    // Splits each of the words further; may rewrite the text.
    virtual Status apply(Words& words, SearchBudget& budget) const = 0;
    // Whether it depends on Words::at_front.
    virtual bool asks_for_front() const { return false; }
  };

  // Leaves a text in one piece.
  PreTokenizer() = default;

  // The member "pre_tokenizer" of a tokenizer.json (null: none): Sequence, ByteLevel, Metaspace, Split, Whitespace,
  // WhitespaceSplit, Digits, Punctuation. `add_prefix_space`, if given, overrules that of a ByteLevel that stands at
  // the top, as tokenizer_config.json does. Errors name the field; another type is refused by name.
  static StatusOr<PreTokenizer> parse(const JsonField& field, std::optional<bool> add_prefix_space);

  // ByteLevel with GPT-2's pattern.
  static PreTokenizer byte_level(bool add_prefix_space);

  // Whether split() depends on `at_front`.
  bool asks_for_front() const { return asks_for_front_; }

  // `at_front`: nothing stands before the text. REQUIRES: valid UTF-8. Errors: kResourceExhausted, as
  // Normalizer::apply.
  StatusOr<Words> split(std::string_view text, bool at_front, SearchBudget& budget) const;

 private:
  Status append(const JsonField& field, std::optional<bool> add_prefix_space);

  std::vector<std::unique_ptr<Step>> steps_;
  bool asks_for_front_ = false;
};

}  // namespace transept

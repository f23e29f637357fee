// What a tokenizer does to a text before it splits it: normal forms, lower case, replacements, ...
// Immutable, so thread-safe. Source: normalizers/ of Hugging Face's tokenizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/search_budget.h"

namespace transept {

class Normalizer final {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    virtual StatusOr<std::string> apply(std::string text, SearchBudget& budget) const = 0;
    // Whether the step takes the text's first character away and puts nothing in its place.
    virtual bool drops_front(std::string_view /*text*/) const { return false; }
  };

  // Leaves texts as they are.
  Normalizer() = default;

  // The member "normalizer" of a tokenizer.json (null: none): Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents,
  // Strip, Prepend, Replace, Precompiled, Nmt, BertNormalizer. Errors name the field; another type is refused by name.
  static StatusOr<Normalizer> parse(const JsonField& field);

  bool empty() const { return steps_.empty(); }

  // REQUIRES: valid UTF-8. Errors: kResourceExhausted where a text grows out of all proportion, or the budget for
  // regular expressions does not last.
  StatusOr<std::string> apply(std::string text, SearchBudget& budget) const;
  // Of the text that apply() is about to get: whether its first character is dropped on the way, so that the result
  // does not begin where the text does.
  StatusOr<bool> drops_front(std::string text, SearchBudget& budget) const;

 private:
  Status append(const JsonField& field);

  std::vector<std::unique_ptr<Step>> steps_;
};

// Whether a text of `size` bytes that came of one of `original_size` has outgrown what honest tokenizer files do.
bool grew_too_much(size_t original_size, size_t size);
Status grew_too_much_error();

}  // namespace transept

// What a tokenizer does to a text before it splits it: normal forms, lower case, replacements, ...
// Immutable, so thread-safe. Source: normalizers/ of Hugging Face's tokenizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/normalizer_step.h"
#include "text/search_budget.h"

namespace transept {

class Normalizer final {
 public:
  using Step = NormalizerStep;

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

}  // namespace transept

// Normalises a text before it is split: normal forms, lower case, replacements, ... Immutable, so thread-safe. Source:
// normalizers/ of Hugging Face's tokenizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/pipeline/normalizer_step.h"
#include "text/unicode/search_budget.h"

namespace transept {

class Normalizer final {
 public:
  using Step = NormalizerStep;

  // Changes nothing.
  Normalizer() = default;

  // Parses the member "normalizer" of a tokenizer.json (null: none): Sequence, NFC, NFD, NFKC, NFKD, Lowercase,
  // StripAccents, Strip, Prepend, Replace, Precompiled, Nmt, BertNormalizer; 64 steps at most. Errors name the field;
  // another type is kUnimplemented, by name.
  static StatusOr<Normalizer> parse(const JsonField& field);

  bool empty() const { return steps_.empty(); }

  // Returns the normalised text. REQUIRES: valid UTF-8. Errors: kResourceExhausted if the text grows too much
  // (text_growth.h), or the budget of regular expressions runs out.
  StatusOr<std::string> apply(std::string text, SearchBudget& budget) const;
  // Whether apply() would drop the first character of `text`, so that the result does not begin where the text does.
  // REQUIRES and errors: as apply().
  StatusOr<bool> drops_front(std::string text, SearchBudget& budget) const;

 private:
  Status append(const JsonField& field);

  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace transept

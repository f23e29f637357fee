// A pattern of a tokenizer file, {"String": ".."} or {"Regex": ".."}. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/unicode/search_budget.h"
#include "text/unicode/text_range.h"

namespace transept {

class TextPattern {
 public:
  // Errors name the field: an empty string (kUnimplemented); a string over 1024 bytes; those of Regex::compile.
  static StatusOr<std::unique_ptr<TextPattern>> parse(const JsonField& field);
  virtual ~TextPattern() = default;

  // Returns all matches from left to right, without overlaps. REQUIRES: valid UTF-8. Errors: as Regex::find_all.
  virtual StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& budget) const = 0;
};

}  // namespace transept

// Regular expressions of tokenizer files: Oniguruma's Ruby syntax, run by PCRE2 under limits. A hostile pattern gives
// an error, never a hang. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/unicode/search_budget.h"
#include "text/unicode/text_range.h"

namespace transept {

// The Unicode version of PCRE2's tables, by which \p{...} and \w of a pattern match (10.42; a test compares it with
// PCRE2's own).
inline constexpr std::string_view kRegexUnicodeVersion = "14.0.0";

class Regex final {
 public:
  // Errors: kInvalidArgument: not valid, or over 64 KiB; kUnimplemented: syntax that Oniguruma and PCRE2 understand
  // differently and that is not translated (nested character classes, repeated intervals, callouts, some escapes).
  static StatusOr<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Returns all matches from left to right, without overlaps. An empty match counts unless it touches the match before
  // it. REQUIRES: valid UTF-8. Errors: kResourceExhausted if the budget or a limit on one attempt runs out.
  StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& budget) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);

  std::unique_ptr<Code> code_;
};

// Returns the same pattern in PCRE2's syntax. Errors: as Regex::compile. Exposed for tests.
StatusOr<std::string> translate_oniguruma(std::string_view pattern);

}  // namespace transept

// The regular expressions of tokenizer files: Oniguruma's Ruby syntax, run by PCRE2 under limits, so that a hostile
// pattern ends in an error and never hangs. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/search_budget.h"
#include "text/text_range.h"

namespace transept {

// Of PCRE2's tables, which \p{...} and \w of a pattern mean (10.42; a test holds it against PCRE2's own word).
inline constexpr std::string_view kRegexUnicodeVersion = "14.0.0";

class Regex final {
 public:
  // Errors: not valid; kUnimplemented where it is written with something that Oniguruma and PCRE2 understand
  // differently and that is not translated (nested character classes, repeated intervals, callouts).
  static StatusOr<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // All matches from left to right, none overlapping; an empty one counts unless it touches the match before it.
  // REQUIRES: valid UTF-8. Errors: kResourceExhausted where the budget does not last.
  StatusOr<std::vector<TextRange>> find_all(std::string_view text, SearchBudget& budget) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);

  std::unique_ptr<Code> code_;
};

// The same pattern in PCRE2's syntax. Exposed for tests.
StatusOr<std::string> translate_oniguruma(std::string_view pattern);

}  // namespace transept

// The regular expressions of tokenizer files: Oniguruma's Ruby syntax, run by PCRE2 under limits, so that a hostile
// pattern ends in an error and never hangs. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/text_range.h"

namespace transept {

class Regex final {
 public:
  // Errors: not valid, or written with something that Oniguruma and PCRE2 understand differently and that is not
  // translated (nested character classes, possessive intervals, callouts).
  static StatusOr<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // What a search may cost: the thread's own time. PCRE2 does not count the steps of simple loops, so the clock has the
  // last word. Honest patterns run at several MB/s, twenty times as fast as this.
  struct Limits {
    double seconds = 0.5;
    double seconds_per_byte = 4e-6;
  };

  // All matches from left to right, none overlapping; an empty one counts unless it touches the match before it.
  // REQUIRES: valid UTF-8. Errors: kResourceExhausted where the search would take too long.
  StatusOr<std::vector<TextRange>> find_all(std::string_view text, const Limits& limits) const;
  StatusOr<std::vector<TextRange>> find_all(std::string_view text) const { return find_all(text, Limits()); }

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);

  std::unique_ptr<Code> code_;
};

// The same pattern in PCRE2's syntax. Exposed for tests.
StatusOr<std::string> translate_oniguruma(std::string_view pattern);

}  // namespace transept

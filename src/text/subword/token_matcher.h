// Searches a text for many strings at once: finds the leftmost match, and the longest of those. Immutable after
// construction, so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/text_range.h"

namespace transept {

class TokenMatcher final {
 public:
  struct Match {
    TextRange range;
    int32_t value;
  };
  struct Pattern {
    std::string text;  // an empty one is never found
    int32_t value;
  };

  TokenMatcher() : TokenMatcher(std::vector<Pattern>()) {}
  // The first of equal texts counts.
  explicit TokenMatcher(std::vector<Pattern> patterns);

  bool empty() const { return patterns_.empty(); }

  // Returns the first match at or after `position`. Time: linear in the bytes that it passes, times the length of the
  // patterns.
  std::optional<Match> find(std::string_view text, size_t position) const;

 private:
  struct Range {
    uint32_t begin, end;  // of patterns_
  };

  // Narrows `range`, whose patterns share their first `depth` bytes, to those that have `byte` next.
  Range narrow(Range range, size_t depth, char byte) const;

  std::vector<Pattern> patterns_;               // sorted
  std::array<Range, 256> beginning_with_ = {};  // by first byte
};

}  // namespace transept

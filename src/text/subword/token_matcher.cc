#include "text/subword/token_matcher.h"

#include <algorithm>

namespace transept {

TokenMatcher::TokenMatcher(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::erase_if(patterns_, [](const Pattern& pattern) { return pattern.text.empty(); });
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  const auto same = [](const Pattern& a, const Pattern& b) { return a.text == b.text; };
  patterns_.erase(std::unique(patterns_.begin(), patterns_.end(), same), patterns_.end());
  const Range all{0, static_cast<uint32_t>(patterns_.size())};
  for (size_t byte = 0; byte < 256; ++byte) beginning_with_[byte] = narrow(all, 0, static_cast<char>(byte));
}

TokenMatcher::Range TokenMatcher::narrow(Range range, size_t depth, char byte) const {
  // A pattern of `depth` bytes comes before all that are longer; std::string compares bytes as unsigned.
  const auto key = [&](const Pattern& pattern) {
    return pattern.text.size() <= depth ? -1 : static_cast<int>(static_cast<uint8_t>(pattern.text[depth]));
  };
  const int wanted = static_cast<uint8_t>(byte);
  const auto begin = patterns_.begin() + range.begin;
  const auto end = patterns_.begin() + range.end;
  const auto low = std::lower_bound(begin, end, wanted, [&](const Pattern& p, int value) { return key(p) < value; });
  const auto high = std::upper_bound(low, end, wanted, [&](int value, const Pattern& p) { return value < key(p); });
  return {static_cast<uint32_t>(low - patterns_.begin()), static_cast<uint32_t>(high - patterns_.begin())};
}

std::optional<TokenMatcher::Match> TokenMatcher::find(std::string_view text, size_t position) const {
  if (empty()) return std::nullopt;
  for (; position < text.size(); ++position) {
    Range range = beginning_with_[static_cast<uint8_t>(text[position])];
    const Pattern* longest = nullptr;
    for (size_t depth = 1; range.begin < range.end; ++depth) {
      if (patterns_[range.begin].text.size() == depth) longest = &patterns_[range.begin];
      if (position + depth >= text.size()) break;
      range = narrow(range, depth, text[position + depth]);
    }
    if (longest != nullptr) return Match{{position, position + longest->text.size()}, longest->value};
  }
  return std::nullopt;
}

}  // namespace transept

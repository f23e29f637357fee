// The pieces of Florence-2's answers: places (`<loc_12>`), and phrases with places behind them, as the regular
// expressions of transformers' Florence2PostProcessor find them. Pure functions: thread-safe, in time linear in the
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept::florence {

inline constexpr std::string_view kPlace = "<loc_";
inline constexpr std::string_view kSeparator = "<sep>", kBegin = "<poly>", kEnd = "</poly>";

struct Place {
  int64_t bin = 0;
  size_t end = 0;  // behind it
};

// The place that begins at `at`.
std::optional<Place> place_at(std::string_view text, size_t at);

// The places one behind another from `at` on; `end` is behind them.
std::vector<int64_t> places_from(std::string_view text, size_t at, size_t& end);

// Texts without a "<", each with at least four tokens behind it; are_empty: tokens alone. Tokens are places, and with
// has_polygons kSeparator, kBegin and kEnd, too. Views into `text`.
std::vector<std::string_view> find_phrases(std::string_view text, bool are_empty, bool has_polygons);

// What stands in front of the first token of a phrase, stripped; nothing: there is none, or a line ends in between.
std::optional<std::string_view> label_of(std::string_view phrase, bool has_polygons);

std::string without_others_than_ascii(std::string_view text);
void remove_all(std::string& text, std::string_view piece);

}  // namespace transept::florence

#include "multimodal/florence_phrases.h"

#include <algorithm>

#include "multimodal/python_strip.h"

namespace transept::florence {
namespace {

// The end of the token at `at`, of those that may stand behind a phrase; nothing: there is none.
std::optional<size_t> token_end(std::string_view text, size_t at, bool has_polygons) {
  if (const std::optional<Place> place = place_at(text, at)) return place->end;
  if (!has_polygons) return std::nullopt;
  for (const std::string_view token : {kSeparator, kBegin, kEnd}) {
    if (text.substr(at).starts_with(token)) return at + token.size();
  }
  return std::nullopt;
}

// Behind the tokens from `at` on, if there are at least four.
std::optional<size_t> tokens_end(std::string_view text, size_t at, bool has_polygons, size_t& behind) {
  int64_t count = 0;
  behind = at;
  while (const std::optional<size_t> end = token_end(text, behind, has_polygons)) {
    behind = *end;
    ++count;
  }
  return count >= 4 ? std::optional(behind) : std::nullopt;
}

size_t num_leading_spaces(std::string_view text) {
  const std::string_view stripped = python_strip(text);
  return stripped.empty() ? text.size() : static_cast<size_t>(stripped.data() - text.data());
}

}  // namespace

std::optional<Place> place_at(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with(kPlace)) return std::nullopt;
  constexpr int64_t kMost = 1'000'000'000;  // beyond it, numbers are of no picture
  Place place{0, at + kPlace.size()};
  const size_t first = place.end;
  for (; place.end < text.size() && text[place.end] >= '0' && text[place.end] <= '9'; ++place.end) {
    place.bin = std::min(kMost, place.bin * 10 + (text[place.end] - '0'));
  }
  if (place.end == first || place.end == text.size() || text[place.end] != '>') return std::nullopt;
  ++place.end;
  return place;
}

std::vector<int64_t> places_from(std::string_view text, size_t at, size_t& end) {
  std::vector<int64_t> bins;
  end = at;
  while (const std::optional<Place> place = place_at(text, end)) {
    bins.push_back(place->bin);
    end = place->end;
  }
  return bins;
}

std::vector<std::string_view> find_phrases(std::string_view text, bool are_empty, bool has_polygons) {
  std::vector<std::string_view> phrases;
  size_t behind = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t token = text.find('<', at);
    if (token == std::string_view::npos) break;
    const bool has_text = token > at;
    const std::optional<size_t> end =
        are_empty || has_text ? tokens_end(text, token, has_polygons, behind) : std::nullopt;
    if (end.has_value()) {
      const size_t begin = are_empty ? token : at;
      phrases.push_back(text.substr(begin, *end - begin));
      at = *end;
    } else {
      // Tokens that are too few alone are too few behind each other. As text, the first one's "loc_" may begin a
      // phrase.
      at = are_empty && behind > token ? behind : token + 1;
    }
  }
  return phrases;
}

std::optional<std::string_view> label_of(std::string_view phrase, bool has_polygons) {
  size_t first = std::string_view::npos;
  for (const std::string_view token :
       {std::string_view("<od>"), std::string_view("</od>"), std::string_view("<box>"), std::string_view("</box>"),
        std::string_view("<bbox>"), std::string_view("</bbox>"), kPlace, kBegin}) {
    if (token != kBegin || has_polygons) first = std::min(first, phrase.find(token));
  }
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view label = phrase.substr(0, first);
  if (label.substr(num_leading_spaces(label)).find('\n') != std::string_view::npos) return std::nullopt;
  return python_strip(label);
}

std::string without_others_than_ascii(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) kept.push_back(c);
  }
  return kept;
}

void remove_all(std::string& text, std::string_view piece) {
  std::string kept;
  size_t begin = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, begin)) {
    kept.append(text, begin, at - begin);
    begin = at + piece.size();
  }
  text = kept.append(text, begin);
}

}  // namespace transept::florence

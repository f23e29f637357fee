#include "text/unicode/precompiled_charsmap.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode/text_growth.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

// A unit of darts-clone's double array: bits 0 to 7 the byte that leads to it, bit 8 whether a rule ends here, bit 9
// and the 22 above where its children lie; the unit at child 0 holds a rule's value in 31 bits.
constexpr bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
constexpr uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
constexpr uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

constexpr size_t kUnitBytes = 4;

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < kUnitBytes; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

}  // namespace

StatusOr<PrecompiledCharsmap> PrecompiledCharsmap::parse(std::string_view bytes) {
  if (bytes.size() > kMaxBytes) {
    return invalid_argument(bytes.size(), " bytes are more than the ", kMaxBytes, " allowed");
  }
  if (bytes.size() < kUnitBytes) return invalid_argument("ends inside the trie's size");
  const size_t trie_bytes = read_u32(bytes, 0);
  bytes.remove_prefix(kUnitBytes);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > bytes.size()) {
    return invalid_argument("a trie of ", trie_bytes, " bytes is said to be in ", bytes.size());
  }
  PrecompiledCharsmap map;
  map.units_.resize(trie_bytes / kUnitBytes);
  for (size_t i = 0; i < map.units_.size(); ++i) map.units_[i] = read_u32(bytes, i * kUnitBytes);
  map.replacements_ = bytes.substr(trie_bytes);
  if (!is_valid_utf8(map.replacements_)) return invalid_argument("its replacements are not valid UTF-8");
  RETURN_IF_ERROR(map.check());
  return map;
}

// Visits every unit that a search can reach, so that searches need no checks of their own.
Status PrecompiledCharsmap::check() const {
  const auto outside = [] { return invalid_argument("its trie points outside of itself"); };
  std::vector<bool> seen(units_.size());
  std::vector<uint32_t> waiting = {0};
  while (!waiting.empty()) {
    const uint32_t node = waiting.back();
    waiting.pop_back();
    const uint32_t base = node ^ offset_of(units_[node]);
    if ((base | 0xFF) >= units_.size()) return outside();
    if (has_leaf(units_[node])) {
      const uint32_t value = value_of(units_[base]);
      if (value >= replacements_.size()) return invalid_argument("its trie points outside of the replacements");
      if ((static_cast<uint8_t>(replacements_[value]) & 0xC0) == 0x80) {
        return invalid_argument("its trie points into the middle of a character");
      }
    }
    for (uint32_t byte = 1; byte < 256; ++byte) {
      const uint32_t child = base ^ byte;
      if (label_of(units_[child]) != byte || seen[child]) continue;
      seen[child] = true;
      waiting.push_back(child);
    }
  }
  return ok_status();
}

template <typename Visit>
void PrecompiledCharsmap::for_each_rule(std::string_view text, Visit visit) const {
  if (units_.empty()) return;
  const size_t end = std::min(text.size(), kMaxRuleBytes);
  uint32_t base = offset_of(units_[0]);
  for (size_t i = 0; i < end; ++i) {
    const uint32_t byte = static_cast<uint8_t>(text[i]);
    if (byte == 0) return;
    const uint32_t node = base ^ byte;
    if (label_of(units_[node]) != byte) return;
    base = node ^ offset_of(units_[node]);
    if (has_leaf(units_[node]) && !visit(i + 1, base)) return;
  }
}

PrecompiledCharsmap::Match PrecompiledCharsmap::match(size_t length, uint32_t node) const {
  const size_t begin = value_of(units_[node]);
  const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
  return {length, std::string_view(replacements_).substr(begin, end - begin)};
}

std::optional<PrecompiledCharsmap::Match> PrecompiledCharsmap::longest(std::string_view text) const {
  size_t found = 0;
  uint32_t found_node = 0;
  for_each_rule(text, [&](size_t length, uint32_t node) {
    found = length;
    found_node = node;
    return true;
  });
  if (found == 0) return std::nullopt;
  return match(found, found_node);
}

std::optional<PrecompiledCharsmap::Match> PrecompiledCharsmap::shortest(std::string_view text) const {
  std::optional<Match> result;
  for_each_rule(text, [&](size_t length, uint32_t node) {
    result = match(length, node);
    return false;
  });
  return result;
}

void PrecompiledCharsmap::append_grapheme(std::string_view grapheme, std::string& out) const {
  // A rule that the grapheme begins with stands for all of it, and what the rule does not know is lost. From six bytes
  // on that is so for each character alone.
  constexpr size_t kFirstLongGrapheme = 6;
  if (grapheme.size() < kFirstLongGrapheme) {
    if (const auto rule = shortest(grapheme)) {
      out += rule->replacement;
      return;
    }
  }
  for (size_t begin = 0, end = 0; begin < grapheme.size(); begin = end) {
    next_code_point(grapheme, end);
    const std::string_view character = grapheme.substr(begin, end - begin);
    if (const auto rule = shortest(character)) {
      out += rule->replacement;
    } else {
      out += character;
    }
  }
}

Status PrecompiledCharsmap::append_by_graphemes(std::string_view text, std::string& out) const {
  const size_t old_size = out.size();
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = grapheme_end(text, begin);
    append_grapheme(text.substr(begin, end - begin), out);
    if (grew_too_much(text.size(), out.size() - old_size)) return grew_too_much_error();
  }
  return ok_status();
}

}  // namespace transept

#include "text/chat/text_ops.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/unicode.h"

namespace transept::jinja {

bool is_space(uint32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

namespace {

template <typename Belongs>
size_t leading(std::string_view text, Belongs belongs) {
  size_t i = 0;
  while (i < text.size()) {
    size_t after = i;
    if (!belongs(next_code_point(text, after))) break;
    i = after;
  }
  return i;
}

template <typename Belongs>
size_t trailing(std::string_view text, Belongs belongs) {
  size_t end = text.size();
  while (end > 0) {
    const size_t begin = previous_position(text, end);
    size_t after = begin;
    if (!belongs(next_code_point(text, after))) break;
    end = begin;
  }
  return text.size() - end;
}

bool has_case(uint32_t c) { return is_lowercase(c) || is_uppercase(c) || is_titlecase(c); }

}  // namespace

size_t leading_space(std::string_view text) { return leading(text, is_space); }
size_t trailing_space(std::string_view text) { return trailing(text, is_space); }

std::string_view strip(std::string_view text, std::optional<std::string_view> characters, Sides sides) {
  const auto belongs = [characters](uint32_t c) {
    if (!characters.has_value()) return is_space(c);
    std::string encoded;
    append_utf8(encoded, c);
    return characters->find(encoded) != std::string_view::npos;
  };
  if (sides != Sides::kRight) text.remove_prefix(leading(text, belongs));
  if (sides != Sides::kLeft) text.remove_suffix(trailing(text, belongs));
  return text;
}

namespace {

std::vector<std::string_view> split_at_space(std::string_view text, int64_t max_splits, bool from_right) {
  const auto is_text = [](uint32_t c) { return !is_space(c); };
  std::vector<std::string_view> parts;
  text = from_right ? text.substr(0, text.size() - trailing_space(text)) : text.substr(leading_space(text));
  while (!text.empty()) {
    if (max_splits-- == 0) {  // the rest is one part, with the space at its other end
      parts.push_back(text);
      break;
    }
    if (from_right) {
      const size_t length = trailing(text, is_text);
      parts.push_back(text.substr(text.size() - length));
      text.remove_suffix(length);
      text.remove_suffix(trailing_space(text));
    } else {
      const size_t length = leading(text, is_text);
      parts.push_back(text.substr(0, length));
      text.remove_prefix(length);
      text.remove_prefix(leading_space(text));
    }
  }
  return parts;
}

}  // namespace

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (wanted.empty() || from > text.size()) return from > text.size() ? std::string_view::npos : from;
  const void* const found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last_text(std::string_view text, std::string_view wanted) {
  const std::string reversed(text.rbegin(), text.rend());
  const std::string reversed_wanted(wanted.rbegin(), wanted.rend());
  const size_t found = find_text(reversed, reversed_wanted);
  return found == std::string_view::npos ? found : text.size() - found - wanted.size();
}

std::vector<std::string_view> split_text(std::string_view text, std::optional<std::string_view> separator,
                                         int64_t max_splits, bool from_right) {
  std::vector<std::string_view> parts;
  if (!separator.has_value()) {
    parts = split_at_space(text, max_splits, from_right);
  } else {  // from the right: from the left of all read backwards
    const std::string backwards = from_right ? std::string(text.rbegin(), text.rend()) : "";
    const std::string separator_backwards = from_right ? std::string(separator->rbegin(), separator->rend()) : "";
    const std::string_view searched = from_right ? std::string_view(backwards) : text;
    const std::string_view wanted = from_right ? std::string_view(separator_backwards) : *separator;
    const auto part = [&](size_t begin, size_t end) {
      return from_right ? text.substr(text.size() - end, end - begin) : text.substr(begin, end - begin);
    };
    size_t begin = 0;
    while (max_splits-- != 0) {
      const size_t found = find_text(searched, wanted, begin);
      if (found == std::string_view::npos) break;
      parts.push_back(part(begin, found));
      begin = found + wanted.size();
    }
    parts.push_back(part(begin, text.size()));
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const uint32_t c = next_code_point(text, i);
    const bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

size_t byte_of(std::string_view text, size_t num_chars, size_t index) {
  if (num_chars == text.size()) return index;
  size_t byte = 0;
  for (; index > 0; --index) next_code_point(text, byte);
  return byte;
}

size_t chars_before(std::string_view text, size_t byte) {
  return static_cast<size_t>(std::count_if(text.begin(), text.begin() + static_cast<ptrdiff_t>(byte),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  std::string out;
  size_t first = 0;
  append_titlecase(out, next_code_point(text, first));
  // With the first letter before it: whether a sigma is a final one depends on what stands before it.
  const std::string lower = lowercase_in_context(text);
  const std::string lower_first = lowercase_in_context(text.substr(0, first));
  return out + lower.substr(lower_first.size());
}

std::string title(std::string_view text) {
  std::string out;
  const std::string lower = lowercase_in_context(text);  // a sigma takes two bytes in any case
  size_t lower_begin = 0;
  bool cased_before = false;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_code_point(text, i);
    const size_t lower_size = lowercase(text.substr(begin, i - begin)).size();
    if (cased_before) {
      out += std::string_view(lower).substr(lower_begin, lower_size);
    } else {
      append_titlecase(out, c);
    }
    lower_begin += lower_size;
    cased_before = has_case(c);
  }
  return out;
}

std::string title_words(std::string_view text) {
  const auto cuts = [](uint32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; };
  std::string out;
  while (!text.empty()) {
    const size_t gap = leading(text, cuts);
    const size_t word = leading(text.substr(gap), [&](uint32_t c) { return !cuts(c); });
    out += text.substr(0, gap);
    if (word > 0) {
      size_t first = gap;
      next_code_point(text, first);
      out += uppercase(text.substr(gap, first - gap));
      out += lowercase_in_context(text.substr(first, gap + word - first));
    }
    text.remove_prefix(gap + word);
  }
  return out;
}

namespace {

template <typename Wrong>
bool all_of_case(std::string_view text, Wrong wrong) {
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text, i);
    if (wrong(c)) return false;
    found |= has_case(c);
  }
  return found;
}

// Without the white space around it and the underscores between digits; nothing if an underscore stands elsewhere.
std::optional<std::string> plain_number(std::string_view text) {
  text = strip(text, std::nullopt, Sides::kBoth);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || std::isalnum(static_cast<uint8_t>(text[i - 1])) == 0 ||
               std::isalnum(static_cast<uint8_t>(text[i + 1])) == 0) {
      return std::nullopt;
    }
  }
  return plain;
}

}  // namespace

bool all_lower(std::string_view text) {
  return all_of_case(text, [](uint32_t c) { return is_uppercase(c) || is_titlecase(c); });
}

bool all_upper(std::string_view text) {
  return all_of_case(text, [](uint32_t c) { return is_lowercase(c) || is_titlecase(c); });
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  const std::optional<std::string> plain = plain_number(text);
  if (!plain.has_value() || plain->empty()) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  const char type = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  if (type != '\0' && digits.size() > 1 && digits[0] == '0' && ascii_lower(digits[1]) == type) digits.remove_prefix(2);
  if (digits.starts_with('-')) return std::nullopt;
  int64_t value = 0;
  const std::string signed_digits = (negative ? "-" : "") + std::string(digits);
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto [stop, error] = std::from_chars(signed_digits.data(), end, value, base);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_float(std::string_view text) {
  const std::optional<std::string> plain = plain_number(text);
  if (!plain.has_value() || plain->empty()) return std::nullopt;
  std::string_view rest = *plain;
  const bool negative = rest[0] == '-';
  if (negative || rest[0] == '+') rest.remove_prefix(1);
  const std::string lower = ascii_lower(rest);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (rest.empty() || (rest[0] != '.' && (rest[0] < '0' || rest[0] > '9'))) return std::nullopt;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (stop != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {  // from_chars leaves the value: too large, or too small
      value = std::abs(std::strtod(std::string(rest).c_str(), nullptr));
    }
  }
  return negative ? -value : value;
}

}  // namespace transept::jinja

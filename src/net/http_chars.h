// Character classes of HTTP (RFC 9110, 5.5 and 5.6.2), independent of the locale. Pure functions: thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"

namespace transept {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns 0..15; -1: not a hex digit.
inline int hex_digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char l = ascii_lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

inline bool is_token_char(char c) {
  return is_digit(c) || is_letter(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Accepts no control characters except tabs; accepts all bytes from 0x80.
inline bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; });
}

inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

// Strips spaces and tabs from both ends (RFC 9110's OWS; no other character counts as space).
inline std::string_view trim_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace transept

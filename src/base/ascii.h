// Converts ASCII letters to lower case in any locale. Every other byte stays, so UTF-8 stays valid. Pure functions:
// thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace transept {

constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ascii_lower(c);
  return lower;
}

}  // namespace transept

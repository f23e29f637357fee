// UTF-8, decoded as WHATWG does: every maximal invalid piece becomes one U+FFFD. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

struct Utf8Step {
  enum class Kind { kValid, kInvalid, kIncomplete };
  Kind kind;
  uint32_t code_point;  // of a valid character; else 0
  int num_bytes;        // of the character, the maximal invalid piece, or the present part of an incomplete one
};

// Reads the first character of `text`. REQUIRES: not empty. kIncomplete: the text ends inside a character that more
// bytes could complete.
Utf8Step read_utf8(std::string_view text);

// Appends the encoding of `code_point`. REQUIRES: at most U+10FFFF, not a surrogate (unchecked).
void append_utf8(std::string& out, uint32_t code_point);

// Returns `text` with every maximal invalid piece, an incomplete end included, replaced by one U+FFFD.
std::string sanitize_utf8(std::string_view text);
// The same, with one U+FFFD for every byte of such a piece.
std::string sanitize_utf8_bytes(std::string_view text);

bool is_valid_utf8(std::string_view text);

}  // namespace transept

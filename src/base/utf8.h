// UTF-8 as WHATWG decodes it: every maximal invalid piece is one U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

struct Utf8Step {
  enum class Kind { kValid, kInvalid, kIncomplete };
  Kind kind;
  uint32_t code_point;  // of a valid one
  int num_bytes;        // of the character, of the maximal invalid piece, or of what is there of an incomplete one
};

// Reads one character at the front of `text` (not empty). kIncomplete: the text ends inside a character that could
// still become valid.
Utf8Step read_utf8(std::string_view text);

void append_utf8(std::string& out, uint32_t code_point);

// The text with every maximal invalid piece (an incomplete end included) replaced by U+FFFD.
std::string sanitize_utf8(std::string_view text);
// The same with one U+FFFD for every byte of such a piece.
std::string sanitize_utf8_bytes(std::string_view text);

bool is_valid_utf8(std::string_view text);

}  // namespace transept

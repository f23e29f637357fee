// Unicode for tokenizers: categories, white space, normal forms, lower case, grapheme clusters. Tables are utf8proc's,
// and three short ones in unicode.cc of the same version. Functions, thread-safe. REQUIRES: texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

// The version of all tables here; a test compares it with utf8proc's own. Regular expressions have another (regex.h).
inline constexpr std::string_view kUnicodeVersion = "15.0.0";

// Returns the character at `position`, and moves `position` past it. REQUIRES: valid UTF-8 from `position` on; position
// < text.size().
inline uint32_t next_code_point(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[position + i])); };
  const uint32_t lead = byte(0);
  uint32_t code_point = lead;
  size_t length = 1;
  if (lead >= 0xF0) {
    code_point = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    length = 4;
  } else if (lead >= 0xE0) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    length = 3;
  } else if (lead >= 0xC0) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    length = 2;
  }
  position += length;
  return code_point;
}

// Returns where the character before `position` begins. REQUIRES: position > 0.
inline size_t previous_position(std::string_view text, size_t position) {
  do {
    --position;
  } while (position > 0 && (static_cast<uint8_t>(text[position]) & 0xC0) == 0x80);
  return position;
}

enum class CharClass : uint8_t { kLetter, kNumber, kSpace, kOther };

// \p{L}, \p{N}, White_Space, or none of them.
CharClass char_class(uint32_t code_point);

// The property White_Space.
bool is_white_space(uint32_t code_point);
// \p{N}: Nd, Nl, No.
bool is_numeric(uint32_t code_point);
// Nd.
bool is_decimal_digit(uint32_t code_point);
// \p{M}: Mn, Mc, Me.
bool is_mark(uint32_t code_point);
// Mn.
bool is_nonspacing_mark(uint32_t code_point);
// Cc, Cf, Co.
bool is_control(uint32_t code_point);
// \p{P}, and the ASCII symbols.
bool is_punctuation(uint32_t code_point);
// \w of UTS 18: alphabetic, marks, decimal digits, connectors, joiners.
bool is_word_character(uint32_t code_point);

// Returns the end of the extended grapheme cluster that begins at `begin` (UAX 29). REQUIRES: a cluster begins there;
// begin < text.size().
size_t grapheme_end(std::string_view text, size_t begin);

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Time: linear in the text, except sorting the marks of one base character.
std::string normalize(std::string_view text, NormalForm form);

// Character by character, without context (no final sigma).
std::string lowercase(std::string_view text);
// With context: a capital sigma at the end of a word becomes a final sigma.
std::string lowercase_in_context(std::string_view text);

}  // namespace transept

// Upper and title case of texts, as Python's str has them (Unicode's full mappings, those of SpecialCasing.txt without
// conditions): lower case is in unicode.h. Functions, thread-safe. REQUIRES: texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

// "straße" -> "STRASSE".
std::string uppercase(std::string_view text);
// Appends the title case of one character: "ß" -> "Ss", "ǆ" -> "ǅ".
void append_titlecase(std::string& out, uint32_t code_point);

// The properties Uppercase and Lowercase, and the general category Lt.
bool is_uppercase(uint32_t code_point);
bool is_lowercase(uint32_t code_point);
bool is_titlecase(uint32_t code_point);

// What Python's repr() writes as it is: all but separators (the space apart), controls, unassigned and private ones.
bool is_printable(uint32_t code_point);

}  // namespace transept

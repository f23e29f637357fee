// Untrusted text in messages. Terminals obey control characters: they are written as escapes. Pure functions:
// thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Messages cut longer texts: they identify an input and do not echo it.
inline constexpr size_t kMaxQuotedBytes = 60;

// Returns `text` as valid UTF-8, with \xNN for each control character (C0, DEL, C1) but ends of lines and tabs: what is
// written to a terminal.
std::string printable(std::string_view text);

// Returns `text` in double quotes, as valid UTF-8 without control characters: \n, \t, \xNN. Cuts a text of more than
// `max_bytes` at the end of a character, and appends its size: "en" or "eeeeeeee..." (1000000 bytes).
std::string in_quotes(std::string_view text, size_t max_bytes = kMaxQuotedBytes);

}  // namespace transept

// Quotes untrusted text in messages. A pure function: thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Messages cut longer texts: they identify an input and do not echo it.
inline constexpr size_t kMaxQuotedBytes = 60;

// Returns `text` in double quotes, as valid UTF-8. Cuts a text of more than `max_bytes` at the end of a character, and
// appends its size: "en" or "eeeeeeee..." (1000000 bytes).
std::string quoted(std::string_view text, size_t max_bytes = kMaxQuotedBytes);

}  // namespace transept

// A text of a user, a file or a client, quoted in a message.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Longer texts are cut in messages, which name what they are about and do not send it back.
inline constexpr size_t kMaxQuotedBytes = 60;

// In double quotes, and valid UTF-8; of more than `max_bytes` the beginning, up to the end of a character, and how long
// the whole is: "en" or "eeeeeeee..." (1000000 bytes).
std::string quoted(std::string_view text, size_t max_bytes = kMaxQuotedBytes);

}  // namespace transept

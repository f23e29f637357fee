// Base64 (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace transept {

// The bytes; nothing if the text is not base64: another character (line ends are), a missing or wrong padding, bits
// beyond the last byte that are not zero.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace transept

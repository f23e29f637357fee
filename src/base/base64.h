// Encodes and decodes base64 (RFC 4648, section 4). Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace transept {

// Returns the decoded bytes. Returns nullopt if `text` is not base64: another character (line ends included), missing
// or wrong padding, or bits other than 0 after the last byte.
std::optional<std::string> decode_base64(std::string_view text);

std::string encode_base64(std::string_view bytes);

}  // namespace transept

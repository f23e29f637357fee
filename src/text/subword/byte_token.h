// Tokens of one byte, written <0x0A>: the fallback for characters that a vocabulary lacks. Functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

// "<0x0A>".
std::string byte_token(uint8_t byte);

// Returns the byte of a token of this form, its digits in either case; nothing for any other token.
std::optional<uint8_t> parse_byte_token(std::string_view token);

}  // namespace transept

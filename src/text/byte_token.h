// Tokens that stand for one byte, written <0x0A>: what is left of a character that a vocabulary lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

// "<0x0A>".
std::string byte_token(uint8_t byte);

// The byte that a token of six characters stands for, its digits of either case; nothing if it stands for none.
std::optional<uint8_t> parse_byte_token(std::string_view token);

}  // namespace transept

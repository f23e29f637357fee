// Bytes as text. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace transept {

// Returns two lower-case hexadecimal digits a byte.
std::string hex_text(std::span<const std::byte> bytes);

}  // namespace transept

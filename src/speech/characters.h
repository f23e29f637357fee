// Characters as the reference's language counts and strips them. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace transept {

// Code points; a maximal invalid piece counts as one.
int64_t num_characters(std::string_view text);

// White_Space, and the four separators 0x1C to 0x1F.
bool is_space(uint32_t code_point);

// How many bytes of spaces the text begins with.
size_t leading_space_bytes(std::string_view text);

std::string_view strip_space(std::string_view text);

}  // namespace transept

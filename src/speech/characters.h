// Characters and white space as Python's str counts and strips them. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace transept {

// Counts code points of UTF-8; a maximal invalid piece counts as one.
int64_t num_characters(std::string_view text);

// True for Unicode's White_Space and the four separators 0x1C to 0x1F, as str.isspace.
bool is_space(uint32_t code_point);

// Returns the number of bytes of white space at the beginning.
size_t leading_space_bytes(std::string_view text);

// Removes white space at both ends, as str.strip.
std::string_view strip_space(std::string_view text);

}  // namespace transept

// str.strip() of Python, by whose rules processors of transformers cut texts. Functions: thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace transept {

// str.isspace() of a character.
bool is_python_space(uint32_t c);

// Without the white space (str.isspace()) at both ends. A view into the argument. REQUIRES: valid UTF-8.
std::string_view python_strip(std::string_view text);

}  // namespace transept

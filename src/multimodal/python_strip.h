// str.strip() of Python, by whose rules Florence-2's processor cuts texts. A function: thread-safe.
#pragma once

#include <string_view>

namespace transept {

// Without the white space (str.isspace()) at both ends. A view into the argument. REQUIRES: valid UTF-8.
std::string_view python_strip(std::string_view text);

}  // namespace transept

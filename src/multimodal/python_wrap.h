// textwrap.TextWrapper(width=N).wrap() of Python 3.11 to 3.14, by which Pix2Struct's processor breaks a question into
// lines. A function: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace transept {

// Breaks `text` into lines of at most `width` characters: tabs become spaces up to the next multiple of 8, every other
// white space of ASCII becomes one space; lines break at spaces, behind hyphens within words, at dashes, and in words
// that are longer than a line. White space around a break is dropped. A text of nothing but white space has no lines.
// Time: linear. REQUIRES: valid UTF-8; width >= 1.
std::vector<std::string> python_wrap(std::string_view text, size_t width);

}  // namespace transept

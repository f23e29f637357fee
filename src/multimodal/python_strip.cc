#include "multimodal/python_strip.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace transept {

bool is_python_space(uint32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view python_strip(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = read_utf8(text.substr(at));
    const size_t next = at + static_cast<size_t>(step.num_bytes);
    if (step.kind != Utf8Step::Kind::kValid || !is_python_space(step.code_point)) {
      begin = std::min(begin, at);
      end = next;
    }
    at = next;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace transept

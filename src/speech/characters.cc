#include "speech/characters.h"

#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace transept {

int64_t num_characters(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) i += static_cast<size_t>(read_utf8(text.substr(i)).num_bytes);
  return count;
}

bool is_space(uint32_t code_point) { return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F); }

size_t leading_space_bytes(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const Utf8Step step = read_utf8(text.substr(i));
    if (step.kind != Utf8Step::Kind::kValid || !is_space(step.code_point)) break;
    i += static_cast<size_t>(step.num_bytes);
  }
  return i;
}

std::string_view strip_space(std::string_view text) {
  text.remove_prefix(leading_space_bytes(text));
  while (!text.empty()) {
    const size_t last = previous_position(text, text.size());
    const Utf8Step step = read_utf8(text.substr(last));
    const bool whole = step.kind == Utf8Step::Kind::kValid && last + static_cast<size_t>(step.num_bytes) == text.size();
    if (!whole || !is_space(step.code_point)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

}  // namespace transept

#include "base/quoted.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace transept {

std::string quoted(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return str_cat("\"", sanitize_utf8(text), "\"");
  size_t end = 0;
  while (end < max_bytes) {
    const auto step = static_cast<size_t>(read_utf8(text.substr(end)).num_bytes);
    if (end + step > max_bytes) break;
    end += step;
  }
  return str_cat("\"", sanitize_utf8(text.substr(0, end)), "...\" (", text.size(), " bytes)");
}

}  // namespace transept

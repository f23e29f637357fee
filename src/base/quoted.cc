#include "base/quoted.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace transept {

namespace {

std::string without_controls(std::string_view text, bool keeps_lines) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::string clean = sanitize_utf8(text);
  std::string out;
  for (size_t at = 0; at < clean.size();) {
    const Utf8Step step = read_utf8(std::string_view(clean).substr(at));
    const auto c = static_cast<uint32_t>(step.code_point);
    const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    const bool is_line = c == '\n' || c == '\t';
    if (!is_control || (is_line && keeps_lines)) {
      out.append(clean, at, static_cast<size_t>(step.num_bytes));
    } else if (is_line) {
      out += c == '\n' ? "\\n" : "\\t";
    } else {
      out += "\\x";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
    }
    at += static_cast<size_t>(step.num_bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return without_controls(text, /*keeps_lines=*/true); }

std::string in_quotes(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return str_cat("\"", without_controls(text, false), "\"");
  size_t end = 0;
  while (end < max_bytes) {
    const auto step = static_cast<size_t>(read_utf8(text.substr(end)).num_bytes);
    if (end + step > max_bytes) break;
    end += step;
  }
  return str_cat("\"", without_controls(text.substr(0, end), false), "...\" (", text.size(), " bytes)");
}

}  // namespace transept

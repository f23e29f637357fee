#include "text/chat/string_literal.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>

#include "base/utf8.h"

namespace transept::jinja {
namespace {

constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// Reads `digits` hexadecimal digits, 0 of them: as many octal ones as there are, up to three.
StatusOr<uint32_t> read_code_point(std::string_view literal, size_t& position, size_t digits) {
  const bool octal = digits == 0;
  size_t end = position;
  const auto belongs = [octal](char c) {
    return (c >= '0' && c <= (octal ? '7' : '9')) || (!octal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
  };
  while (end < literal.size() && end - position < (octal ? 3 : digits) && belongs(literal[end])) ++end;
  if (!octal && end - position < digits) return invalid_argument("a string has an escape that is cut short");
  uint32_t value = 0;
  std::from_chars(literal.data() + position, literal.data() + end, value, octal ? 8 : 16);
  if (value > kMaxCodePoint) return invalid_argument("a string has an escape of no character");
  if (value >= 0xD800 && value <= 0xDFFF) return invalid_argument("a string has an escape of half a character");
  position = end;
  return value;
}

// A character beyond ASCII behind a backslash, as the escape without its backslash that the first step makes of it.
void append_as_escape(std::string& out, uint32_t c) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", c);
  out += text.data();
}

}  // namespace

StatusOr<std::string> unescape(std::string_view literal) {
  std::string out;
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\') {
      out += literal[i++];
      continue;
    }
    if (++i == literal.size()) return invalid_argument("a string ends in a backslash");
    const char c = literal[i];
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
      out += kValues[known];
      ++i;
    } else if (c == '\n') {
      ++i;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++i;
      ASSIGN_OR_RETURN(const uint32_t code_point, read_code_point(literal, i, c == 'x' ? 2 : c == 'u' ? 4 : 8));
      append_utf8(out, code_point);
    } else if (c >= '0' && c <= '7') {
      ASSIGN_OR_RETURN(const uint32_t code_point, read_code_point(literal, i, 0));
      append_utf8(out, code_point);
    } else if (c == 'N') {
      return unimplemented("the escape \\N in a string is not supported");
    } else {
      const Utf8Step step = read_utf8(literal.substr(i));
      out += '\\';
      if (step.code_point >= 0x80) {
        append_as_escape(out, step.code_point);
      } else {
        out += c;
      }
      i += static_cast<size_t>(step.num_bytes);
    }
  }
  return out;
}

}  // namespace transept::jinja

// Splits a template into text and tokens, as jinja2/lexer.py does: trim_blocks and lstrip_blocks on, one newline at the
// end dropped, all newlines as \n. A function, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept::jinja {

enum class TokenKind : uint8_t {
  kData,
  kOutputBegin,
  kOutputEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // of kData, kName, kOperator as written; of kString without quotes and escapes
  int64_t integer = 0;
  double number = 0;

  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
};

// Returns the tokens, kEnd last. Errors, with the line: kInvalidArgument: not valid UTF-8, a character or a comment
// that does not belong there, brackets that do not match; kUnimplemented: names beyond ASCII, \N{..}, integers beyond
// 64 bits.
StatusOr<std::vector<Token>> tokenize(std::string_view source);

// "line 3: <message>".
template <typename... Parts>
Status line_error(int line, const Parts&... parts) {
  return invalid_argument("line ", line, ": ", parts...);
}
template <typename... Parts>
Status line_unsupported(int line, const Parts&... parts) {
  return unimplemented("line ", line, ": ", parts..., " is not supported");
}

}  // namespace transept::jinja

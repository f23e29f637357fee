// The tokens of a template, read by the parsers of expressions and of statements. Used by one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quoted.h"
#include "text/chat/lexer.h"

namespace transept::jinja {

class TokenStream final {
 public:
  // REQUIRES: kEnd is last.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& behind() const { return tokens_[position_ + (position_ + 1 < tokens_.size() ? 1 : 0)]; }
  int line() const { return current().line; }
  // Returns the current token, and goes on.
  const Token& next() {
    const Token& token = current();
    if (token.kind != TokenKind::kEnd) ++position_;
    return token;
  }

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_operator(std::string_view op) const { return current().is_operator(op); }
  bool at_name(std::string_view name) const { return current().is_name(name); }
  bool skip_operator(std::string_view op) { return at_operator(op) && advance(); }
  bool skip_name(std::string_view name) { return at_name(name) && advance(); }

  Status expect_operator(std::string_view op) { return skip_operator(op) ? ok_status() : unexpected(op); }
  Status expect_name(std::string_view name) { return skip_name(name) ? ok_status() : unexpected(name); }
  Status expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) return unexpected(what);
    advance();
    return ok_status();
  }
  StatusOr<std::string> expect_any_name() {
    if (!at(TokenKind::kName)) return unexpected("a name");
    return next().text;
  }

  // "line 3: expected 'endif', found '%}'".
  Status unexpected(std::string_view wanted) const {
    return line_error(line(), "expected ", wanted, ", found ", shown());
  }
  std::string shown() const {
    switch (current().kind) {
      case TokenKind::kEnd: return "the end of the template";
      case TokenKind::kBlockEnd: return "%}";
      case TokenKind::kOutputEnd: return "}}";
      case TokenKind::kBlockBegin: return "{%";
      case TokenKind::kOutputBegin: return "{{";
      default: return in_quotes(current().text);
    }
  }

 private:
  bool advance() {
    next();
    return true;
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace transept::jinja

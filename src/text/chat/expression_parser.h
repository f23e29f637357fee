// Parses expressions of templates, as jinja2/parser.py does. Used by one thread; borrows tokens and constants.
#pragma once

#include <initializer_list>
#include <string_view>

#include "text/chat/ast.h"
#include "text/chat/token_stream.h"

namespace transept::jinja {

// Counts levels of the source while it lives.
class Level final {
 public:
  explicit Level(int& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

class ExpressionParser final {
 public:
  ExpressionParser(TokenStream& tokens, Heap& constants) : tokens_(tokens), constants_(constants) {}

  StatusOr<ExprPtr> expression();                    // parse_expression
  StatusOr<ExprPtr> expression_without_condition();  // parse_expression(with_condexpr=False)
  // One expression, or several with commas: a tuple. `end_name` ends it as the end of a tag does; "": no name does.
  StatusOr<ExprPtr> tuple(bool with_condition, std::string_view end_name = "");
  // Names, tuples of names and, with `members`, members of namespaces.
  StatusOr<ExprPtr> target(bool members, std::string_view end_name = "");
  // "| a | b(1)", of the body of a block. Null if there is none. `begun`: the bar of the first is left out.
  StatusOr<ExprPtr> filters_of_body(bool begun);

  int& depth() { return depth_; }
  // kInvalidArgument beyond kMaxSourceDepth levels.
  Status check_depth(int depth, int line) const;

 private:
  ExprPtr make(ExprKind kind, int line) const;
  ExprPtr constant(const Value& value, int line) const;
  // Counts the levels below, and checks them.
  StatusOr<ExprPtr> finish(ExprPtr expr) const;
  StatusOr<ExprPtr> binary(ExprKind kind, ExprPtr left, ExprPtr right, int line) const;

  StatusOr<ExprPtr> conditional();
  StatusOr<ExprPtr> either();
  StatusOr<ExprPtr> both();
  StatusOr<ExprPtr> negation();
  StatusOr<ExprPtr> comparison();
  StatusOr<ExprPtr> sum();
  StatusOr<ExprPtr> concatenation();
  StatusOr<ExprPtr> product();
  StatusOr<ExprPtr> power();
  StatusOr<ExprPtr> unary(bool with_filter);
  StatusOr<ExprPtr> primary(bool members);
  StatusOr<ExprPtr> name_or_literal(bool members);
  StatusOr<ExprPtr> items(bool simple, bool with_condition, bool members, bool in_parentheses,
                          std::string_view end_name);
  StatusOr<ExprPtr> list();
  StatusOr<ExprPtr> dict();
  StatusOr<ExprPtr> postfix(ExprPtr expr);
  StatusOr<ExprPtr> filters_and_tests(ExprPtr expr);
  StatusOr<ExprPtr> subscript(ExprPtr expr);
  StatusOr<ExprPtr> subscribed(ExprPtr expr, int line);
  StatusOr<ExprPtr> filter(ExprPtr expr);
  StatusOr<ExprPtr> test(ExprPtr expr);
  StatusOr<ExprPtr> call(ExprPtr expr);
  Status call_arguments(Expr& call);
  StatusOr<std::string> dotted_name();

  TokenStream& tokens_;
  Heap& constants_;
  int depth_ = 0;
};

}  // namespace transept::jinja

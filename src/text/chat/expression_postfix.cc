// What follows an expression: subscripts, calls, filters, tests.
#include "text/chat/expression_parser.h"
#include "text/chat/filters.h"
#include "text/chat/tests.h"

namespace transept::jinja {

StatusOr<ExprPtr> ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (tokens_.at_operator(".") || tokens_.at_operator("[")) {
      ASSIGN_OR_RETURN(expr, subscript(std::move(expr)));
    } else if (tokens_.at_operator("(")) {
      ASSIGN_OR_RETURN(expr, call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (tokens_.skip_operator("|")) {
      ASSIGN_OR_RETURN(expr, filter(std::move(expr)));
    } else if (tokens_.at_name("is")) {
      ASSIGN_OR_RETURN(expr, test(std::move(expr)));
    } else if (tokens_.at_operator("(")) {
      ASSIGN_OR_RETURN(expr, call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::subscript(ExprPtr expr) {
  const Token& token = tokens_.next();
  if (token.text == "[") {
    ASSIGN_OR_RETURN(expr, subscribed(std::move(expr), token.line));
    RETURN_IF_ERROR(tokens_.expect_operator("]"));
    return expr;
  }
  if (tokens_.at(TokenKind::kName)) {
    ExprPtr made = make(ExprKind::kAttribute, token.line);
    made->name = tokens_.next().text;
    made->operands.push_back(std::move(expr));
    return finish(std::move(made));
  }
  if (!tokens_.at(TokenKind::kInteger)) return tokens_.unexpected("a name or a number");
  ExprPtr index = constant(integer(tokens_.next().integer), token.line);
  return binary(ExprKind::kItem, std::move(expr), std::move(index), token.line);
}

// What stands in brackets: an index, a tuple of indices, or a slice.
StatusOr<ExprPtr> ExpressionParser::subscribed(ExprPtr expr, int line) {
  ExprPtr tuple = make(ExprKind::kTuple, line);
  while (!tokens_.at_operator("]")) {
    if (!tuple->operands.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
    ExprPtr begin;
    if (!tokens_.at_operator(":")) {
      ASSIGN_OR_RETURN(begin, expression());
    }
    if (!tokens_.skip_operator(":")) {
      tuple->operands.push_back(std::move(begin));
      continue;
    }
    ExprPtr slice = make(ExprKind::kSlice, line);
    slice->operands.push_back(std::move(expr));
    slice->operands.push_back(std::move(begin));
    slice->operands.resize(4);
    for (size_t i = 2; i < 4; ++i) {
      if (i == 3 && !tokens_.skip_operator(":")) break;
      if (tokens_.at_operator(":") || tokens_.at_operator("]") || tokens_.at_operator(",")) continue;
      ASSIGN_OR_RETURN(slice->operands[i], expression());
    }
    if (!tokens_.at_operator("]") || !tuple->operands.empty()) return line_unsupported(line, "a slice in a tuple");
    return finish(std::move(slice));
  }
  if (tuple->operands.size() == 1) return binary(ExprKind::kItem, std::move(expr), std::move(tuple->operands[0]), line);
  ASSIGN_OR_RETURN(tuple, finish(std::move(tuple)));
  return binary(ExprKind::kItem, std::move(expr), std::move(tuple), line);
}

StatusOr<ExprPtr> ExpressionParser::call(ExprPtr expr) {
  ExprPtr made = make(ExprKind::kCall, tokens_.line());
  made->operands.push_back(std::move(expr));
  RETURN_IF_ERROR(call_arguments(*made));
  return finish(std::move(made));
}

Status ExpressionParser::call_arguments(Expr& call) {
  const int line = tokens_.line();
  const auto wrong_order = [line] { return line_error(line, "arguments of a call in a wrong order"); };
  RETURN_IF_ERROR(tokens_.expect_operator("("));
  for (bool is_first = true; !tokens_.at_operator(")"); is_first = false) {
    if (!is_first) {
      RETURN_IF_ERROR(tokens_.expect_operator(","));
      if (tokens_.at_operator(")")) break;
    }
    if (tokens_.skip_operator("*")) {
      if (call.rest != nullptr || call.keyword_rest != nullptr) return wrong_order();
      ASSIGN_OR_RETURN(call.rest, expression());
    } else if (tokens_.skip_operator("**")) {
      if (call.keyword_rest != nullptr) return wrong_order();
      ASSIGN_OR_RETURN(call.keyword_rest, expression());
    } else if (tokens_.at(TokenKind::kName) && tokens_.behind().is_operator("=")) {
      if (call.keyword_rest != nullptr) return wrong_order();
      std::string name = tokens_.next().text;
      tokens_.next();
      for (const auto& [other, value] : call.keywords) {
        if (other == name) return line_error(line, "the argument ", in_quotes(name), " is given twice");
      }
      ASSIGN_OR_RETURN(ExprPtr value, expression());
      call.keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (call.rest != nullptr || call.keyword_rest != nullptr || !call.keywords.empty()) return wrong_order();
      ASSIGN_OR_RETURN(call.operands.emplace_back(), expression());
    }
  }
  return tokens_.expect_operator(")");
}

StatusOr<std::string> ExpressionParser::dotted_name() {
  ASSIGN_OR_RETURN(std::string name, tokens_.expect_any_name());
  while (tokens_.skip_operator(".")) {
    ASSIGN_OR_RETURN(const std::string part, tokens_.expect_any_name());
    name += "." + part;
  }
  return name;
}

// Behind the bar.
StatusOr<ExprPtr> ExpressionParser::filter(ExprPtr expr) {
  ExprPtr made = make(ExprKind::kFilter, tokens_.line());
  made->operands.push_back(std::move(expr));
  ASSIGN_OR_RETURN(made->name, dotted_name());
  made->filter = find_filter(made->name);
  if (tokens_.at_operator("(")) RETURN_IF_ERROR(call_arguments(*made));
  return finish(std::move(made));
}

StatusOr<ExprPtr> ExpressionParser::filters_of_body(bool begun) {
  ExprPtr expr;
  while (begun || tokens_.skip_operator("|")) {
    begun = false;
    ASSIGN_OR_RETURN(expr, filter(std::move(expr)));
  }
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::test(ExprPtr expr) {
  const int line = tokens_.next().line;
  const bool negated = tokens_.skip_name("not");
  ExprPtr made = make(ExprKind::kTest, line);
  made->operands.push_back(std::move(expr));
  ASSIGN_OR_RETURN(made->name, dotted_name());
  made->test = find_test(made->name);
  if (tokens_.at_operator("(")) {
    RETURN_IF_ERROR(call_arguments(*made));
  } else {
    const TokenKind kind = tokens_.current().kind;
    const bool begins_value = kind == TokenKind::kName || kind == TokenKind::kString || kind == TokenKind::kInteger ||
                              kind == TokenKind::kFloat || tokens_.at_operator("[") || tokens_.at_operator("{");
    if (begins_value && !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and")) {
      if (tokens_.at_name("is")) return line_error(line, "tests cannot be chained");
      ASSIGN_OR_RETURN(ExprPtr argument, primary(/*members=*/false));
      ASSIGN_OR_RETURN(made->operands.emplace_back(), postfix(std::move(argument)));
    }
  }
  ASSIGN_OR_RETURN(made, finish(std::move(made)));
  if (!negated) return made;
  ExprPtr negation = make(ExprKind::kNot, line);
  negation->operands.push_back(std::move(made));
  return finish(std::move(negation));
}

}  // namespace transept::jinja

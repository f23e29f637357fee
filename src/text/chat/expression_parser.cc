// Operators and literals. What follows an expression is in expression_postfix.cc.
#include "text/chat/expression_parser.h"

#include <algorithm>
#include <optional>

namespace transept::jinja {
namespace {

std::optional<CompareOp> compare_op(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEqual;
  if (token.text == "!=") return CompareOp::kNotEqual;
  if (token.text == "<") return CompareOp::kLess;
  if (token.text == "<=") return CompareOp::kLessEqual;
  if (token.text == ">") return CompareOp::kGreater;
  if (token.text == ">=") return CompareOp::kGreaterEqual;
  return std::nullopt;
}

}  // namespace

Status ExpressionParser::check_depth(int depth, int line) const {
  return depth <= kMaxSourceDepth ? ok_status() : line_error(line, "more than ", kMaxSourceDepth, " levels of nesting");
}

ExprPtr ExpressionParser::make(ExprKind kind, int line) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

ExprPtr ExpressionParser::constant(const Value& value, int line) const {
  ExprPtr expr = make(ExprKind::kConstant, line);
  expr->constant = value;
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::finish(ExprPtr expr) const {
  int below = 0;
  const auto count = [&below](const ExprPtr& child) {
    if (child != nullptr) below = std::max(below, child->depth);
  };
  for (const ExprPtr& operand : expr->operands) count(operand);
  for (const auto& [name, value] : expr->keywords) count(value);
  count(expr->rest);
  count(expr->keyword_rest);
  expr->depth = below + 1;
  RETURN_IF_ERROR(check_depth(expr->depth, expr->line));
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::binary(ExprKind kind, ExprPtr left, ExprPtr right, int line) const {
  ExprPtr expr = make(kind, line);
  expr->operands.push_back(std::move(left));
  expr->operands.push_back(std::move(right));
  return finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::expression() { return conditional(); }
StatusOr<ExprPtr> ExpressionParser::expression_without_condition() { return either(); }

StatusOr<ExprPtr> ExpressionParser::conditional() {
  const Level level(depth_);
  RETURN_IF_ERROR(check_depth(depth_, tokens_.line()));
  int line = tokens_.line();
  ASSIGN_OR_RETURN(ExprPtr then, either());
  while (tokens_.skip_name("if")) {
    ExprPtr expr = make(ExprKind::kConditional, line);
    ASSIGN_OR_RETURN(expr->operands.emplace_back(), either());
    expr->operands.push_back(std::move(then));
    expr->operands.emplace_back();
    if (tokens_.skip_name("else")) {
      ASSIGN_OR_RETURN(expr->operands[2], conditional());
    }
    ASSIGN_OR_RETURN(then, finish(std::move(expr)));
    line = tokens_.line();
  }
  return then;
}

StatusOr<ExprPtr> ExpressionParser::either() {
  ASSIGN_OR_RETURN(ExprPtr left, both());
  for (int line = tokens_.line(); tokens_.skip_name("or"); line = tokens_.line()) {
    ASSIGN_OR_RETURN(ExprPtr right, both());
    ASSIGN_OR_RETURN(left, binary(ExprKind::kOr, std::move(left), std::move(right), line));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::both() {
  ASSIGN_OR_RETURN(ExprPtr left, negation());
  for (int line = tokens_.line(); tokens_.skip_name("and"); line = tokens_.line()) {
    ASSIGN_OR_RETURN(ExprPtr right, negation());
    ASSIGN_OR_RETURN(left, binary(ExprKind::kAnd, std::move(left), std::move(right), line));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::negation() {
  if (!tokens_.at_name("not")) return comparison();
  const Level level(depth_);
  RETURN_IF_ERROR(check_depth(depth_, tokens_.line()));
  ExprPtr expr = make(ExprKind::kNot, tokens_.next().line);
  ASSIGN_OR_RETURN(expr->operands.emplace_back(), negation());
  return finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::comparison() {
  ExprPtr expr = make(ExprKind::kCompare, tokens_.line());
  ASSIGN_OR_RETURN(expr->operands.emplace_back(), sum());
  while (true) {
    std::optional<CompareOp> op = compare_op(tokens_.current());
    if (op.has_value()) {
      tokens_.next();
    } else if (tokens_.skip_name("in")) {
      op = CompareOp::kIn;
    } else if (tokens_.at_name("not") && tokens_.behind().is_name("in")) {
      tokens_.next();
      tokens_.next();
      op = CompareOp::kNotIn;
    } else {
      break;
    }
    expr->comparisons.push_back(*op);
    ASSIGN_OR_RETURN(expr->operands.emplace_back(), sum());
  }
  if (expr->comparisons.empty()) return std::move(expr->operands[0]);
  return finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::sum() {
  int line = tokens_.line();
  ASSIGN_OR_RETURN(ExprPtr left, concatenation());
  while (tokens_.at_operator("+") || tokens_.at_operator("-")) {
    const BinaryOp op = tokens_.next().text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract;
    ASSIGN_OR_RETURN(ExprPtr right, concatenation());
    ASSIGN_OR_RETURN(left, binary(ExprKind::kBinary, std::move(left), std::move(right), line));
    left->op = op;
    line = tokens_.line();
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::concatenation() {
  ExprPtr expr = make(ExprKind::kConcat, tokens_.line());
  ASSIGN_OR_RETURN(expr->operands.emplace_back(), product());
  while (tokens_.skip_operator("~")) {
    ASSIGN_OR_RETURN(expr->operands.emplace_back(), product());
  }
  if (expr->operands.size() == 1) return std::move(expr->operands[0]);
  return finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::product() {
  constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
      {"*", BinaryOp::kMultiply}, {"/", BinaryOp::kDivide}, {"//", BinaryOp::kFloorDivide}, {"%", BinaryOp::kModulo}};
  int line = tokens_.line();
  ASSIGN_OR_RETURN(ExprPtr left, power());
  while (true) {
    const auto* const op = std::find_if(std::begin(kOps), std::end(kOps),
                                        [&](const auto& candidate) { return tokens_.at_operator(candidate.first); });
    if (op == std::end(kOps)) return left;
    tokens_.next();
    ASSIGN_OR_RETURN(ExprPtr right, power());
    ASSIGN_OR_RETURN(left, binary(ExprKind::kBinary, std::move(left), std::move(right), line));
    left->op = op->second;
    line = tokens_.line();
  }
}

StatusOr<ExprPtr> ExpressionParser::power() {
  int line = tokens_.line();
  ASSIGN_OR_RETURN(ExprPtr left, unary(/*with_filter=*/true));
  while (tokens_.skip_operator("**")) {
    ASSIGN_OR_RETURN(ExprPtr right, unary(/*with_filter=*/true));
    ASSIGN_OR_RETURN(left, binary(ExprKind::kBinary, std::move(left), std::move(right), line));
    left->op = BinaryOp::kPower;
    line = tokens_.line();
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::unary(bool with_filter) {
  const Level level(depth_);
  RETURN_IF_ERROR(check_depth(depth_, tokens_.line()));
  ExprPtr expr;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const Token& sign = tokens_.next();
    expr = make(sign.text == "-" ? ExprKind::kNegative : ExprKind::kPositive, sign.line);
    ASSIGN_OR_RETURN(expr->operands.emplace_back(), unary(/*with_filter=*/false));
    ASSIGN_OR_RETURN(expr, finish(std::move(expr)));
  } else {
    ASSIGN_OR_RETURN(expr, primary(/*members=*/false));
  }
  ASSIGN_OR_RETURN(expr, postfix(std::move(expr)));
  if (with_filter) return filters_and_tests(std::move(expr));
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::primary(bool members) {
  const int line = tokens_.line();
  if (tokens_.at_operator("[")) return list();
  if (tokens_.at_operator("{")) return dict();
  if (!tokens_.skip_operator("(")) return name_or_literal(members);
  ASSIGN_OR_RETURN(ExprPtr expr, items(/*simple=*/false, /*with_condition=*/true, /*members=*/false,
                                       /*in_parentheses=*/true, ""));
  RETURN_IF_ERROR(tokens_.expect_operator(")"));
  RETURN_IF_ERROR(check_depth(depth_, line));
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::name_or_literal(bool members) {
  const int line = tokens_.line();
  switch (tokens_.current().kind) {
    case TokenKind::kName: {
      const std::string& name = tokens_.next().text;
      if (name == "true" || name == "True") return constant(boolean(true), line);
      if (name == "false" || name == "False") return constant(boolean(false), line);
      if (name == "none" || name == "None") return constant(none(), line);
      const bool is_member = members && tokens_.skip_operator(".");
      ExprPtr expr = make(is_member ? ExprKind::kNamespaceMember : ExprKind::kName, line);
      expr->name = name;
      if (is_member) {
        ASSIGN_OR_RETURN(expr->member, tokens_.expect_any_name());
      }
      return expr;
    }
    case TokenKind::kString: {
      std::string text;
      while (tokens_.at(TokenKind::kString)) text += tokens_.next().text;
      return constant(constants_.text(std::move(text)), line);
    }
    case TokenKind::kInteger: return constant(integer(tokens_.next().integer), line);
    case TokenKind::kFloat: return constant(floating(tokens_.next().number), line);
    default: return tokens_.unexpected("an expression");
  }
}

StatusOr<ExprPtr> ExpressionParser::items(bool simple, bool with_condition, bool members, bool in_parentheses,
                                          std::string_view end_name) {
  ExprPtr made = make(ExprKind::kTuple, tokens_.line());
  bool is_tuple = false;
  while (true) {
    if (!made->operands.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
    const bool ends = tokens_.at(TokenKind::kOutputEnd) || tokens_.at(TokenKind::kBlockEnd) ||
                      tokens_.at_operator(")") || (!end_name.empty() && tokens_.at_name(end_name));
    if (ends) break;
    ASSIGN_OR_RETURN(made->operands.emplace_back(), simple           ? primary(members)
                                                    : with_condition ? expression()
                                                                     : expression_without_condition());
    if (!tokens_.at_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!made->operands.empty()) return std::move(made->operands[0]);
    if (!in_parentheses) return tokens_.unexpected("an expression");
  }
  return finish(std::move(made));
}

StatusOr<ExprPtr> ExpressionParser::tuple(bool with_condition, std::string_view end_name) {
  return items(/*simple=*/false, with_condition, /*members=*/false, /*in_parentheses=*/false, end_name);
}

namespace {

bool can_assign(const Expr& expr) {
  if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kNamespaceMember) return true;
  return expr.kind == ExprKind::kTuple &&
         std::all_of(expr.operands.begin(), expr.operands.end(), [](const ExprPtr& item) { return can_assign(*item); });
}

}  // namespace

StatusOr<ExprPtr> ExpressionParser::target(bool members, std::string_view end_name) {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(ExprPtr expr,
                   items(/*simple=*/true, /*with_condition=*/true, members, /*in_parentheses=*/false, end_name));
  if (!can_assign(*expr)) return line_error(line, "this cannot be assigned to");
  return expr;
}

StatusOr<ExprPtr> ExpressionParser::list() {
  ExprPtr made = make(ExprKind::kList, tokens_.next().line);
  while (!tokens_.at_operator("]")) {
    if (!made->operands.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
    if (tokens_.at_operator("]")) break;
    ASSIGN_OR_RETURN(made->operands.emplace_back(), expression());
  }
  tokens_.next();
  return finish(std::move(made));
}

StatusOr<ExprPtr> ExpressionParser::dict() {
  ExprPtr made = make(ExprKind::kDict, tokens_.next().line);
  while (!tokens_.at_operator("}")) {
    if (!made->operands.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
    if (tokens_.at_operator("}")) break;
    ASSIGN_OR_RETURN(made->operands.emplace_back(), expression());
    RETURN_IF_ERROR(tokens_.expect_operator(":"));
    ASSIGN_OR_RETURN(made->operands.emplace_back(), expression());
  }
  tokens_.next();
  return finish(std::move(made));
}

}  // namespace transept::jinja

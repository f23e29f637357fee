#include "text/chat/names.h"

namespace transept::jinja {

void for_each_expr(const Expr& expr, FunctionRef<void(const Expr&)> visit) {
  visit(expr);
  for (const ExprPtr& operand : expr.operands) {
    if (operand != nullptr) for_each_expr(*operand, visit);
  }
  for (const auto& [name, value] : expr.keywords) for_each_expr(*value, visit);
  if (expr.rest != nullptr) for_each_expr(*expr.rest, visit);
  if (expr.keyword_rest != nullptr) for_each_expr(*expr.keyword_rest, visit);
}

void UndeclaredNames::read(const ExprPtr& expr) {
  if (expr == nullptr) return;
  for_each_expr(*expr, [this](const Expr& e) {
    if (e.kind == ExprKind::kName && wanted_.contains(e.name)) found_.insert(e.name);
  });
}
void UndeclaredNames::assign(const ExprPtr& target) {
  if (target == nullptr) return;
  for_each_expr(*target, [this](const Expr& e) {
    if (e.kind == ExprKind::kName) wanted_.erase(e.name);
  });
}

void UndeclaredNames::visit(const MacroDefinition& macro) {
  for (const ExprPtr& parameter : macro.parameters) assign(parameter);
  for (const ExprPtr& fallback : macro.defaults) read(fallback);
  visit(macro.body);
}

void UndeclaredNames::visit(const Body& body) {
  for (const std::unique_ptr<Statement>& statement : body) visit(*statement);
}

void UndeclaredNames::visit(const Statement& s) {
  if (s.kind == StatementKind::kMacro) {
    visit(s.macro);
    return;
  }
  if (s.kind == StatementKind::kWith) {
    for (size_t i = 0; i < s.exprs.size(); i += 2) assign(s.exprs[i]);
    for (size_t i = 1; i < s.exprs.size(); i += 2) read(s.exprs[i]);
  } else {
    for (const ExprPtr& expr : s.exprs) read(expr);
  }
  for (const auto& [condition, branch] : s.branches) {
    read(condition);
    visit(branch);
  }
  assign(s.target);
  const bool body_first = s.kind == StatementKind::kFilterBlock;
  if (!body_first) read(s.value);
  visit(s.macro);
  visit(s.body);
  if (body_first) read(s.value);
  visit(s.else_body);
  read(s.condition);
}

}  // namespace transept::jinja

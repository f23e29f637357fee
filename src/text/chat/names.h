// Which names the statements of a template read and assign, in the order of jinja2's nodes. Used while it is compiled,
// by one thread.
#pragma once

#include <set>
#include <string>

#include "base/function_ref.h"
#include "text/chat/ast.h"

namespace transept::jinja {

// Calls visit for the expression and all below it.
void for_each_expr(const Expr& expr, FunctionRef<void(const Expr&)> visit);

// Which of `names` the statements read before anything in them assigns the name: find_undeclared of jinja2/compiler.py.
class UndeclaredNames final {
 public:
  UndeclaredNames(const Body& body, std::set<std::string> names) : wanted_(std::move(names)) { visit(body); }

  bool has(const std::string& name) const { return found_.contains(name); }

 private:
  void read(const ExprPtr& expr);
  void assign(const ExprPtr& target);
  void visit(const MacroDefinition& macro);
  void visit(const Body& body);
  void visit(const Statement& statement);

  std::set<std::string> wanted_, found_;
};

}  // namespace transept::jinja

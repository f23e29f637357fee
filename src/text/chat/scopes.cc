#include "text/chat/scopes.h"

#include <algorithm>

#include "base/quoted.h"
#include "text/chat/filters.h"
#include "text/chat/lexer.h"
#include "text/chat/names.h"
#include "text/chat/symbols.h"
#include "text/chat/tests.h"

namespace transept::jinja {
namespace {

// Branches copy symbols: what a hostile template may cost.
constexpr size_t kMostCopies = 1'000'000;

class Resolver final {
 public:
  explicit Resolver(Program& program) : program_(program) {}

  Status run() {
    FunctionScope function;
    Symbols symbols(function, nullptr);
    RETURN_IF_ERROR(analyze(program_.body, symbols));
    RETURN_IF_ERROR(bind(program_.body, symbols, {}));
    program_.scope = symbols.scope();
    program_.num_slots = function.num_slots;
    return check_inputs(program_.scope);
  }

 private:
  // Where a statement stands.
  struct Place {
    bool in_loop = false;  // break and continue are possible
    bool soft = false;     // under an {% if %}: unknown filters are errors when they are reached
  };

  // --- Which names a scope reads and assigns. Inner scopes are not entered.

  static void load_names(const ExprPtr& expr, Symbols& symbols) {
    if (expr == nullptr) return;
    for_each_expr(*expr, [&](const Expr& e) {
      if (e.kind == ExprKind::kName) symbols.load(e.name);
    });
  }
  static void store_names(const ExprPtr& target, Symbols& symbols) {
    for_each_expr(*target, [&](const Expr& e) {
      if (e.kind == ExprKind::kName) symbols.store(e.name);
      if (e.kind == ExprKind::kNamespaceMember) symbols.load(e.name);
    });
  }
  static void declare_names(const ExprPtr& target, Symbols& symbols) {
    for_each_expr(*target, [&](const Expr& e) {
      if (e.kind == ExprKind::kName) symbols.declare_parameter(e.name);
    });
  }

  Status analyze(const Body& body, Symbols& symbols) {
    for (const std::unique_ptr<Statement>& statement : body) RETURN_IF_ERROR(analyze(*statement, symbols));
    return ok_status();
  }

  Status analyze(const Statement& s, Symbols& symbols) {
    switch (s.kind) {
      case StatementKind::kOutput:
        for (const ExprPtr& expr : s.exprs) load_names(expr, symbols);
        break;
      case StatementKind::kIf: return analyze_if(s, symbols);
      case StatementKind::kFor:
      case StatementKind::kCallBlock:
      case StatementKind::kFilterBlock: load_names(s.value, symbols); break;
      case StatementKind::kSet:
        load_names(s.value, symbols);
        store_names(s.target, symbols);
        break;
      case StatementKind::kSetBlock:
      case StatementKind::kMacro: store_names(s.target, symbols); break;
      case StatementKind::kWith:
        for (size_t i = 1; i < s.exprs.size(); i += 2) load_names(s.exprs[i], symbols);
        break;
      case StatementKind::kBreak:
      case StatementKind::kContinue: break;
    }
    return ok_status();
  }

  Status copy_of(const Symbols& symbols, std::vector<Symbols>& out) {
    num_copied_ += symbols.size() + 1;
    if (num_copied_ > kMostCopies) return resource_exhausted("the template has too many names in too many branches");
    out.push_back(symbols);
    return ok_status();
  }

  Status analyze_if(const Statement& s, Symbols& symbols) {
    load_names(s.branches[0].first, symbols);
    std::vector<Symbols> branches;
    RETURN_IF_ERROR(copy_of(symbols, branches));
    RETURN_IF_ERROR(analyze(s.branches[0].second, branches.back()));
    if (s.branches.size() > 1) {  // all of the elif, one behind the other
      RETURN_IF_ERROR(copy_of(symbols, branches));
      for (size_t i = 1; i < s.branches.size(); ++i) {
        load_names(s.branches[i].first, branches.back());
        std::vector<Symbols> inner;
        RETURN_IF_ERROR(copy_of(branches.back(), inner));
        RETURN_IF_ERROR(analyze(s.branches[i].second, inner[0]));
        branches.back().merge(inner);
      }
    }
    if (!s.else_body.empty()) {
      RETURN_IF_ERROR(copy_of(symbols, branches));
      RETURN_IF_ERROR(analyze(s.else_body, branches.back()));
    }
    symbols.merge(branches);
    return ok_status();
  }

  // --- Where each name is, with the complete symbols of its scope.

  Status bind(const ExprPtr& expr, const Symbols& symbols, bool soft) {
    return expr == nullptr ? ok_status() : bind(*expr, symbols, soft);
  }

  Status bind(Expr& expr, const Symbols& symbols, bool soft) {
    if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kNamespaceMember) {
      const std::optional<Symbols::Variable> variable = symbols.find(expr.name);
      if (!variable.has_value()) return line_error(expr.line, "the name ", in_quotes(expr.name), " is not known here");
      expr.slot = symbols.slot_of(*variable);
    }
    if (expr.kind == ExprKind::kFilter && expr.filter == nullptr) {
      RETURN_IF_ERROR(refuse(expr.line, unknown_filter(expr.name), soft));
    }
    if (expr.kind == ExprKind::kTest && expr.test == nullptr) {
      RETURN_IF_ERROR(refuse(expr.line, unknown_test(expr.name), soft));
    }
    soft |= expr.kind == ExprKind::kConditional;
    for (const ExprPtr& operand : expr.operands) RETURN_IF_ERROR(bind(operand, symbols, soft));
    for (const auto& [name, value] : expr.keywords) RETURN_IF_ERROR(bind(value, symbols, soft));
    RETURN_IF_ERROR(bind(expr.rest, symbols, soft));
    return bind(expr.keyword_rest, symbols, soft);
  }

  Status refuse(int line, const Status& why, bool soft) {
    Status status = with_prefix(why, str_cat("line ", line));
    if (!soft) return status;
    program_.unsupported.push_back(error_message(status));
    return ok_status();
  }

  Status bind(Body& body, const Symbols& symbols, const Place& place) {
    for (std::unique_ptr<Statement>& statement : body) RETURN_IF_ERROR(bind(*statement, symbols, place));
    return ok_status();
  }

  Status bind(Statement& s, const Symbols& symbols, const Place& place) {
    switch (s.kind) {
      case StatementKind::kOutput:
        for (const ExprPtr& expr : s.exprs) RETURN_IF_ERROR(bind(expr, symbols, place.soft));
        return ok_status();
      case StatementKind::kIf:
        for (auto& [condition, branch] : s.branches) {
          RETURN_IF_ERROR(bind(condition, symbols, /*soft=*/true));
          RETURN_IF_ERROR(bind(branch, symbols, {.in_loop = place.in_loop, .soft = true}));
        }
        return bind(s.else_body, symbols, {.in_loop = place.in_loop, .soft = true});
      case StatementKind::kFor: return bind_loop(s, symbols, place);
      case StatementKind::kSet:
        RETURN_IF_ERROR(bind(s.value, symbols, place.soft));
        return bind(s.target, symbols, place.soft);
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock: return bind_captured(s, symbols, place);
      case StatementKind::kMacro:
        RETURN_IF_ERROR(bind(s.target, symbols, place.soft));
        return bind_macro(s.macro, s.line, symbols);
      case StatementKind::kCallBlock:
        RETURN_IF_ERROR(bind(s.value, symbols, place.soft));
        return bind_macro(s.macro, s.line, symbols);
      case StatementKind::kWith: return bind_with(s, symbols, place);
      case StatementKind::kBreak:
      case StatementKind::kContinue: return place.in_loop ? ok_status() : line_error(s.line, "not in a loop");
    }
    return ok_status();
  }

  Status bind_captured(Statement& s, const Symbols& symbols, const Place& place) {
    Symbols inner(symbols.function(), &symbols);
    RETURN_IF_ERROR(analyze(s.body, inner));
    if (s.kind == StatementKind::kFilterBlock) load_names(s.value, inner);
    RETURN_IF_ERROR(bind(s.body, inner, {.in_loop = place.in_loop}));
    RETURN_IF_ERROR(bind(s.value, inner, /*soft=*/false));
    RETURN_IF_ERROR(bind(s.target, symbols, /*soft=*/false));
    s.scope = inner.scope();
    return check_inputs(s.scope);
  }

  Status bind_with(Statement& s, const Symbols& symbols, const Place& place) {
    Symbols inner(symbols.function(), &symbols);
    for (size_t i = 0; i < s.exprs.size(); i += 2) declare_names(s.exprs[i], inner);
    RETURN_IF_ERROR(analyze(s.body, inner));
    for (size_t i = 0; i < s.exprs.size(); i += 2) {
      RETURN_IF_ERROR(bind(s.exprs[i], inner, /*soft=*/false));
      RETURN_IF_ERROR(bind(s.exprs[i + 1], symbols, place.soft));
    }
    RETURN_IF_ERROR(bind(s.body, inner, {.in_loop = place.in_loop}));
    s.scope = inner.scope();
    return check_inputs(s.scope);
  }

  static ExprPtr copy_of_target(const Expr& target) {
    auto copy = std::make_unique<Expr>();
    copy->kind = target.kind;
    copy->line = target.line;
    copy->name = target.name;
    for (const ExprPtr& item : target.operands) copy->operands.push_back(copy_of_target(*item));
    return copy;
  }

  Status bind_loop(Statement& s, const Symbols& symbols, const Place& place) {
    RETURN_IF_ERROR(check_no_loop_assigned(s));
    Symbols inner(symbols.function(), &symbols);
    s.uses_loop = UndeclaredNames(s.body, {"loop"}).has("loop");
    if (s.uses_loop) s.loop_index = inner.declare_parameter("loop");
    declare_names(s.target, inner);
    RETURN_IF_ERROR(analyze(s.body, inner));
    RETURN_IF_ERROR(bind(s.value, symbols, place.soft));
    RETURN_IF_ERROR(bind(s.target, inner, /*soft=*/false));
    RETURN_IF_ERROR(bind(s.body, inner, {.in_loop = true}));
    s.scope = inner.scope();
    RETURN_IF_ERROR(check_inputs(s.scope));
    if (s.condition != nullptr) RETURN_IF_ERROR(bind_condition(s, symbols));
    if (!s.has_else) return ok_status();
    Symbols otherwise(symbols.function(), &symbols);
    RETURN_IF_ERROR(analyze(s.else_body, otherwise));
    RETURN_IF_ERROR(bind(s.else_body, otherwise, {.in_loop = place.in_loop}));
    s.else_scope = otherwise.scope();
    return check_inputs(s.else_scope);
  }

  Status bind_condition(Statement& s, const Symbols& symbols) {
    Symbols condition(symbols.function(), &symbols);
    condition.make_private();
    s.filter_target = copy_of_target(*s.target);
    declare_names(s.filter_target, condition);
    load_names(s.condition, condition);
    RETURN_IF_ERROR(bind(s.filter_target, condition, /*soft=*/false));
    RETURN_IF_ERROR(bind(s.condition, condition, /*soft=*/false));
    s.condition_scope = condition.scope();
    return check_inputs(s.condition_scope);
  }

  // In a loop and in all that is in it.
  static Status check_no_loop_assigned(const Statement& s) {
    Status status;
    const auto check = [&status](const Expr& e) {
      if (e.kind == ExprKind::kName && e.name == "loop" && status.ok()) {
        status = line_error(e.line, "the variable \"loop\" cannot be assigned in a loop");
      }
    };
    if (s.target != nullptr && s.kind != StatementKind::kMacro) for_each_expr(*s.target, check);
    RETURN_IF_ERROR(status);
    const auto check_body = [](const Body& body) -> Status {
      for (const std::unique_ptr<Statement>& inner : body) RETURN_IF_ERROR(check_no_loop_assigned(*inner));
      return ok_status();
    };
    for (const auto& [condition, branch] : s.branches) RETURN_IF_ERROR(check_body(branch));
    RETURN_IF_ERROR(check_body(s.body));
    RETURN_IF_ERROR(check_body(s.else_body));
    return check_body(s.macro.body);
  }

  Status bind_macro(MacroDefinition& macro, int line, const Symbols& symbols) {
    FunctionScope function;
    function.parent = &symbols.function();
    Symbols inner(function, &symbols);
    for (const ExprPtr& parameter : macro.parameters) inner.declare_parameter(parameter->name);
    for (const ExprPtr& fallback : macro.defaults) load_names(fallback, inner);
    RETURN_IF_ERROR(analyze(macro.body, inner));
    RETURN_IF_ERROR(declare_specials(macro, line, inner));
    for (const ExprPtr& parameter : macro.parameters) RETURN_IF_ERROR(bind(parameter, inner, /*soft=*/false));
    for (const ExprPtr& fallback : macro.defaults) RETURN_IF_ERROR(bind(fallback, inner, /*soft=*/false));
    RETURN_IF_ERROR(bind(macro.body, inner, {}));
    macro.scope = inner.scope();
    macro.num_slots = function.num_slots;
    return check_inputs(macro.scope);
  }

  // caller, kwargs and varargs: parameters of a macro that reads them.
  static Status declare_specials(MacroDefinition& macro, int line, Symbols& inner) {
    const auto place_of = [&macro](std::string_view name) {
      const auto found = std::find_if(macro.parameters.begin(), macro.parameters.end(),
                                      [name](const ExprPtr& parameter) { return parameter->name == name; });
      return found - macro.parameters.begin();
    };
    const auto num_parameters = static_cast<ptrdiff_t>(macro.parameters.size());
    const UndeclaredNames undeclared(macro.body, {"caller", "kwargs", "varargs"});
    macro.names_caller = place_of("caller") < num_parameters;
    macro.uses_caller = undeclared.has("caller");
    if (macro.uses_caller && !macro.names_caller) macro.caller_index = inner.declare_parameter("caller");
    if (macro.uses_caller && place_of("caller") < num_parameters - static_cast<ptrdiff_t>(macro.defaults.size())) {
      return line_error(line, "the parameter \"caller\" needs a default");
    }
    macro.uses_kwargs = undeclared.has("kwargs") && place_of("kwargs") == num_parameters;
    if (macro.uses_kwargs) macro.kwargs_index = inner.declare_parameter("kwargs");
    macro.uses_varargs = undeclared.has("varargs") && place_of("varargs") == num_parameters;
    if (macro.uses_varargs) macro.varargs_index = inner.declare_parameter("varargs");
    return ok_status();
  }

  // What Jinja gives by names of its own, and this version does not.
  static Status check_inputs(const Scope& scope) {
    for (const Load& load : scope) {
      if (load.kind == Load::Kind::kInput && load.input == "self")
        return unimplemented("the variable \"self\" is not supported");
    }
    return ok_status();
  }

  Program& program_;
  size_t num_copied_ = 0;
};

}  // namespace

Status resolve_names(Program& program) { return Resolver(program).run(); }

}  // namespace transept::jinja

#include "text/chat/evaluator.h"

#include "base/quoted.h"
#include "text/chat/arguments.h"
#include "text/chat/builtins.h"
#include "text/chat/filters.h"
#include "text/chat/macro_call.h"
#include "text/chat/methods.h"
#include "text/chat/tests.h"
#include "text/chat/value_ops.h"
#include "text/chat/variables.h"

namespace transept::jinja {

namespace {

enum class Flow : uint8_t { kNext, kBreak, kContinue };

class Evaluator final {
 public:
  Evaluator(Heap& heap, const Run& run) : heap_(heap), run_(run), variables_(heap, *run.inputs) {}

  StatusOr<std::string> run(const Program& program) {
    TextBuilder out(heap_, run_.max_output_bytes);
    out_ = &out;
    variables_.frame() = &variables_.make_frame(program.num_slots, nullptr);
    RETURN_IF_ERROR(variables_.enter(program.scope));
    const StatusOr<Flow> flow = run_body(program.body);
    if (!flow.ok()) return with_prefix(flow.status(), str_cat("line ", line_));
    return out.take();
  }

 private:
  // Counts a level while it lives.
  class Level final {
   public:
    explicit Level(Evaluator& evaluator) : depth_(evaluator.depth_) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Status check() const {
      return depth_ <= kMaxDepth ? ok_status() : invalid_argument("more than ", kMaxDepth, " levels");
    }

   private:
    int& depth_;
  };

  // Sets a variable of the evaluator while it lives.
  template <typename T>
  class Instead final {
   public:
    Instead(T& variable, T value) : variable_(variable), before_(variable) { variable = value; }
    ~Instead() { variable_ = before_; }
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;

   private:
    T& variable_;
    T before_;
  };

  // The items of a loop that meet its condition. The condition runs when an item is asked for.
  class ConditionIterator final : public Iterator {
   public:
    ConditionIterator(Evaluator& evaluator, const Statement& loop, Iterator& items)
        : evaluator_(evaluator), loop_(loop), items_(items), frame_(evaluator.variables_.frame()) {}

    StatusOr<bool> next(Heap& heap, Value& out) override {
      Variables& variables = evaluator_.variables_;
      const Instead frame(variables.frame(), frame_);
      if (!entered_) RETURN_IF_ERROR(variables.enter(loop_.condition_scope));
      entered_ = true;
      while (true) {
        ASSIGN_OR_RETURN(const bool more, items_.next(heap, out));
        if (!more) return false;
        RETURN_IF_ERROR(variables.assign(*loop_.filter_target, out));
        ASSIGN_OR_RETURN(const Value holds, evaluator_.eval(*loop_.condition));
        if (!truth(holds)) continue;
        ASSIGN_OR_RETURN(out, evaluator_.eval(*loop_.filter_target));
        return true;
      }
    }

   private:
    Evaluator& evaluator_;
    const Statement& loop_;
    Iterator& items_;
    Frame* frame_;
    bool entered_ = false;
  };

  // --- Statements.

  StatusOr<Flow> run_body(const Body& body) {
    const Level level(*this);
    RETURN_IF_ERROR(level.check());
    for (const std::unique_ptr<Statement>& statement : body) {
      RETURN_IF_ERROR(heap_.charge());
      line_ = statement->line;
      ASSIGN_OR_RETURN(const Flow flow, run_statement(*statement));
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  StatusOr<Flow> run_statement(const Statement& s) {
    switch (s.kind) {
      case StatementKind::kOutput: return output(s);
      case StatementKind::kIf: return run_if(s);
      case StatementKind::kFor: return run_for(s);
      case StatementKind::kSet: {
        RETURN_IF_ERROR(variables_.check_members(*s.target));
        ASSIGN_OR_RETURN(const Value value, eval(*s.value));
        RETURN_IF_ERROR(variables_.assign(*s.target, value));
        return Flow::kNext;
      }
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock: return run_captured(s);
      case StatementKind::kMacro: variables_.at(s.target->slot) = make_macro(s.macro); return Flow::kNext;
      case StatementKind::kCallBlock: return run_call_block(s);
      case StatementKind::kWith: return run_with(s);
      case StatementKind::kBreak: return Flow::kBreak;
      case StatementKind::kContinue: return Flow::kContinue;
    }
    return Flow::kNext;
  }

  StatusOr<Flow> output(const Statement& s) {
    for (const ExprPtr& expr : s.exprs) {
      ASSIGN_OR_RETURN(const Value value, eval(*expr));
      RETURN_IF_ERROR(append_str(*out_, value));
    }
    return Flow::kNext;
  }

  StatusOr<Flow> run_if(const Statement& s) {
    for (const auto& [condition, branch] : s.branches) {
      ASSIGN_OR_RETURN(const Value value, eval(*condition));
      if (truth(value)) return run_body(branch);
    }
    return run_body(s.else_body);
  }

  StatusOr<Flow> run_for(const Statement& s) {
    ASSIGN_OR_RETURN(const Value value, eval(*s.value));
    ASSIGN_OR_RETURN(Iterator * items, iterate(heap_, value));
    if (s.condition != nullptr) items = &heap_.adopt(std::make_unique<ConditionIterator>(*this, s, *items));
    Loop& loop = heap_.make<Loop>();
    loop.items = items;
    if (s.condition == nullptr) loop.length = length_of(value).value_or(-1);
    bool has_run = false;  // an iteration up to its end: with `continue` or `break` in all, `else` runs as well
    while (true) {
      ASSIGN_OR_RETURN(const bool more, loop.next(heap_));
      if (!more) break;
      RETURN_IF_ERROR(variables_.assign(*s.target, loop.current));
      if (s.uses_loop) {
        variables_.at_index(s.loop_index) = point_to(Kind::kLoop, &Value::loop, &loop);
      }
      RETURN_IF_ERROR(variables_.enter(s.scope));
      ASSIGN_OR_RETURN(const Flow flow, run_body(s.body));
      if (flow == Flow::kBreak) break;
      has_run |= flow == Flow::kNext;
    }
    variables_.leave(s.scope);
    if (has_run || !s.has_else) return Flow::kNext;
    RETURN_IF_ERROR(variables_.enter(s.else_scope));
    ASSIGN_OR_RETURN(const Flow flow, run_body(s.else_body));
    variables_.leave(s.else_scope);
    return flow;
  }

  // The text of a body goes to a variable, or through a filter.
  StatusOr<Flow> run_captured(const Statement& s) {
    RETURN_IF_ERROR(variables_.enter(s.scope));
    TextBuilder text(heap_);
    {
      const Instead out(out_, &text);
      ASSIGN_OR_RETURN(const Flow flow, run_body(s.body));
      if (flow != Flow::kNext) return flow;
    }
    Value value = heap_.text(text.take());
    if (s.value != nullptr) {
      const Instead body(filtered_, value);
      ASSIGN_OR_RETURN(value, eval(*s.value));
    }
    if (s.target != nullptr) {
      RETURN_IF_ERROR(variables_.assign(*s.target, value));
    } else {
      RETURN_IF_ERROR(append_text(value));
    }
    variables_.leave(s.scope);
    return Flow::kNext;
  }

  // What a filter or call block gives must be a text: Python joins it with others.
  Status append_text(const Value& value) {
    if (!value.is(Kind::kText)) return invalid_argument("expected a text, found a value of type ", type_name(value));
    return append_str(*out_, value);
  }

  Value make_macro(const MacroDefinition& definition) {
    Macro& macro = heap_.make<Macro>();
    macro.definition = &definition;
    macro.closure = variables_.frame();
    return point_to<const Macro*>(Kind::kMacro, &Value::macro, &macro);
  }

  StatusOr<Flow> run_call_block(const Statement& s) {
    const Value body = make_macro(s.macro);
    Value value;
    if (s.value == nullptr) {
      ASSIGN_OR_RETURN(value, call_macro(*body.macro, {}));
    } else {
      ASSIGN_OR_RETURN(const Value callee, eval(*s.value->operands[0]));
      ASSIGN_OR_RETURN(Arguments arguments, arguments_of(*s.value));
      arguments.names.emplace_back("caller", body);
      ASSIGN_OR_RETURN(value, call(callee, arguments));
    }
    RETURN_IF_ERROR(append_text(value));
    return Flow::kNext;
  }

  StatusOr<Flow> run_with(const Statement& s) {
    RETURN_IF_ERROR(variables_.enter(s.scope));
    for (size_t i = 0; i < s.exprs.size(); i += 2) {
      ASSIGN_OR_RETURN(const Value value, eval(*s.exprs[i + 1]));
      RETURN_IF_ERROR(variables_.assign(*s.exprs[i], value));
    }
    ASSIGN_OR_RETURN(const Flow flow, run_body(s.body));
    variables_.leave(s.scope);
    return flow;
  }

  // --- Expressions.

  StatusOr<Value> eval(const Expr& e) {
    const Level level(*this);
    RETURN_IF_ERROR(level.check());
    RETURN_IF_ERROR(heap_.charge());
    line_ = e.line;
    switch (e.kind) {
      case ExprKind::kConstant: return e.constant;
      case ExprKind::kName:
      case ExprKind::kNamespaceMember: return name(e);
      case ExprKind::kTuple:
      case ExprKind::kList: return sequence(e);
      case ExprKind::kDict: return dict(e);
      case ExprKind::kNot:
      case ExprKind::kNegative:
      case ExprKind::kPositive: return unary(e);
      case ExprKind::kBinary: {
        ASSIGN_OR_RETURN(const Value left, eval(*e.operands[0]));
        ASSIGN_OR_RETURN(const Value right, eval(*e.operands[1]));
        return binary(heap_, e.op, left, right);
      }
      case ExprKind::kAnd:
      case ExprKind::kOr: {
        ASSIGN_OR_RETURN(const Value left, eval(*e.operands[0]));
        if (truth(left) == (e.kind == ExprKind::kOr)) return left;
        return eval(*e.operands[1]);
      }
      case ExprKind::kCompare: return comparison(e);
      case ExprKind::kConcat: return concatenation(e);
      case ExprKind::kAttribute: {
        ASSIGN_OR_RETURN(const Value value, eval(*e.operands[0]));
        return attribute(heap_, value, e.name);
      }
      case ExprKind::kItem: {
        ASSIGN_OR_RETURN(const Value value, eval(*e.operands[0]));
        ASSIGN_OR_RETURN(const Value index, eval(*e.operands[1]));
        return item(heap_, value, index);
      }
      case ExprKind::kSlice: return sliced(e);
      case ExprKind::kCall: {
        ASSIGN_OR_RETURN(const Value callee, eval(*e.operands[0]));
        ASSIGN_OR_RETURN(const Arguments arguments, arguments_of(e));
        return call(callee, arguments);
      }
      case ExprKind::kFilter: return filtered(e);
      case ExprKind::kTest: return tested(e);
      case ExprKind::kConditional: return conditional(e);
    }
    return none();
  }

  StatusOr<Value> name(const Expr& e) {
    const Value& value = variables_.at(e.slot);
    return value.missing() ? heap_.undefined_because(str_cat(in_quotes(e.name), " is undefined")) : value;
  }

  StatusOr<Value> sequence(const Expr& e) {
    std::vector<Value> items;
    items.reserve(e.operands.size());
    for (const ExprPtr& operand : e.operands) {
      ASSIGN_OR_RETURN(items.emplace_back(), eval(*operand));
    }
    return e.kind == ExprKind::kList ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
  }

  StatusOr<Value> dict(const Expr& e) {
    const Value made = heap_.dict({});
    for (size_t i = 0; i < e.operands.size(); i += 2) {
      ASSIGN_OR_RETURN(const Value key, eval(*e.operands[i]));
      ASSIGN_OR_RETURN(const Value value, eval(*e.operands[i + 1]));
      RETURN_IF_ERROR(set_key(heap_, *made.dict, key, value));
    }
    return made;
  }

  StatusOr<Value> unary(const Expr& e) {
    ASSIGN_OR_RETURN(const Value value, eval(*e.operands[0]));
    if (e.kind == ExprKind::kNot) return boolean(!truth(value));
    return e.kind == ExprKind::kNegative ? negative(value) : positive(value);
  }

  StatusOr<Value> comparison(const Expr& e) {
    ASSIGN_OR_RETURN(Value left, eval(*e.operands[0]));
    for (size_t i = 0; i < e.comparisons.size(); ++i) {
      ASSIGN_OR_RETURN(const Value right, eval(*e.operands[i + 1]));
      ASSIGN_OR_RETURN(const bool holds, compare(heap_, e.comparisons[i], left, right));
      if (!holds) return boolean(false);
      left = right;
    }
    return boolean(true);
  }

  StatusOr<Value> concatenation(const Expr& e) {
    TextBuilder out(heap_);
    for (const ExprPtr& operand : e.operands) {
      ASSIGN_OR_RETURN(const Value value, eval(*operand));
      RETURN_IF_ERROR(append_str(out, value));
    }
    return heap_.text(out.take());
  }

  StatusOr<Value> sliced(const Expr& e) {
    ASSIGN_OR_RETURN(const Value value, eval(*e.operands[0]));
    Value bounds[3];
    for (size_t i = 0; i < 3; ++i) {
      if (e.operands[i + 1] == nullptr) continue;
      ASSIGN_OR_RETURN(bounds[i], eval(*e.operands[i + 1]));
    }
    return slice(heap_, value, bounds[0], bounds[1], bounds[2]);
  }

  StatusOr<Value> filtered(const Expr& e) {
    Value value = filtered_;
    if (e.operands[0] != nullptr) {
      ASSIGN_OR_RETURN(value, eval(*e.operands[0]));
    }
    if (e.filter == nullptr) return unknown_filter(e.name);
    ASSIGN_OR_RETURN(const Arguments arguments, arguments_of(e));
    line_ = e.line;
    return apply_filter(heap_, *e.filter, value, arguments);
  }

  StatusOr<Value> tested(const Expr& e) {
    ASSIGN_OR_RETURN(const Value value, eval(*e.operands[0]));
    if (e.test == nullptr) return unknown_test(e.name);
    ASSIGN_OR_RETURN(const Arguments arguments, arguments_of(e));
    ASSIGN_OR_RETURN(const bool holds, e.test->apply(heap_, value, arguments));
    return boolean(holds);
  }

  StatusOr<Value> conditional(const Expr& e) {
    ASSIGN_OR_RETURN(const Value condition, eval(*e.operands[0]));
    if (truth(condition)) return eval(*e.operands[1]);
    if (e.operands[2] != nullptr) return eval(*e.operands[2]);
    return heap_.undefined_because("the inline if-expression evaluated to false and no else section was defined.");
  }

  // --- Calls.

  StatusOr<Arguments> arguments_of(const Expr& e) {
    Arguments arguments;
    for (size_t i = 1; i < e.operands.size(); ++i) {
      ASSIGN_OR_RETURN(arguments.places.emplace_back(), eval(*e.operands[i]));
    }
    for (const auto& [name, expr] : e.keywords) {
      ASSIGN_OR_RETURN(const Value value, eval(*expr));
      arguments.names.emplace_back(name, value);
    }
    if (e.rest != nullptr) {
      ASSIGN_OR_RETURN(const Value rest, eval(*e.rest));
      ASSIGN_OR_RETURN(const std::vector<Value> items, items_of(heap_, rest));
      arguments.places.insert(arguments.places.end(), items.begin(), items.end());
    }
    if (e.keyword_rest == nullptr) return arguments;
    ASSIGN_OR_RETURN(const Value rest, eval(*e.keyword_rest));
    if (!rest.is(Kind::kDict)) return invalid_argument("** needs a dict, not ", type_name(rest));
    for (const auto& [key, value] : rest.dict->items) {
      ASSIGN_OR_RETURN(const std::string_view name, text_of(key, "a key of **"));
      for (const auto& [other, unused] : arguments.names) {
        if (other == name) return invalid_argument("the argument ", in_quotes(name), " is given twice");
      }
      arguments.names.emplace_back(name, value);
      RETURN_IF_ERROR(heap_.charge(1 + static_cast<int64_t>(arguments.names.size() / 16)));
    }
    return arguments;
  }

  StatusOr<Value> call(const Value& callee, const Arguments& arguments) {
    switch (callee.kind) {
      case Kind::kMacro: return call_macro(*callee.macro, arguments);
      case Kind::kMethod: return call_method(heap_, *callee.method, arguments);
      case Kind::kFunction: return call_function(heap_, callee.function, arguments, run_.now);
      case Kind::kUndefined:
        return invalid_argument(callee.text == nullptr ? "a value is undefined" : callee.text->view);
      default: return invalid_argument("a value of type ", type_name(callee), " cannot be called");
    }
  }

  StatusOr<Value> call_macro(const Macro& macro, const Arguments& arguments) {
    ASSIGN_OR_RETURN(Frame* const frame, bind_macro(heap_, variables_, macro, arguments));
    return run_macro(*macro.definition, *frame);
  }

  StatusOr<Value> run_macro(const MacroDefinition& d, Frame& frame) {
    TextBuilder text(heap_);
    const Instead in_frame(variables_.frame(), &frame);
    const Instead out(out_, &text);
    RETURN_IF_ERROR(variables_.enter(d.scope));
    for (size_t i = 0; i < d.parameters.size(); ++i) {
      Value& value = frame.slots[static_cast<size_t>(d.parameters[i]->slot.index)];
      if (!value.missing()) continue;
      const size_t num_required = d.parameters.size() - d.defaults.size();
      if (i < num_required) {
        value = heap_.undefined_because(str_cat("parameter ", in_quotes(d.parameters[i]->name), " was not provided"));
      } else {
        ASSIGN_OR_RETURN(value, eval(*d.defaults[i - num_required]));
      }
    }
    RETURN_IF_ERROR(run_body(d.body).status());
    return heap_.text(text.take());
  }

  Heap& heap_;
  const Run& run_;
  Variables variables_;
  TextBuilder* out_ = nullptr;
  Value filtered_;  // the text of the block whose filters run
  int line_ = 0;
  int depth_ = 0;
};

}  // namespace

StatusOr<std::string> evaluate(Heap& heap, const Program& program, const Run& run) {
  return Evaluator(heap, run).run(program);
}

}  // namespace transept::jinja

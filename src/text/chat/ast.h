// The tree of a template. parser.h makes it, scopes.h fills in where names live, evaluator.h runs it. Plain data, owned
// by a Program; immutable once parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/heap.h"

namespace transept::jinja {

// Levels of brackets, operators, blocks within one another. CPython takes 200 brackets and 100 blocks.
inline constexpr int kMaxSourceDepth = 150;

struct Filter;
struct Test;
struct Expr;
struct Statement;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Statement>>;

// A variable: `index` in the frame that is `hops` functions further out.
struct Slot {
  int hops = 0;
  int index = -1;
};

enum class ExprKind : uint8_t {
  kConstant,
  kName,             // name, slot
  kNamespaceMember,  // only assigned to: name, slot, member
  kTuple,            // operands
  kList,             // operands
  kDict,             // operands: key, value, key, value, ..
  kNot,
  kNegative,
  kPositive,
  kBinary,  // op
  kAnd,
  kOr,
  kCompare,  // comparisons between neighbours of the operands
  kConcat,
  kAttribute,    // .name
  kItem,         // [operands[1]]
  kSlice,        // [operands[1]:operands[2]:operands[3]], which may be null
  kCall,         // operands: callee, arguments ..
  kFilter,       // operands: value (null: the body of a block), arguments ..
  kTest,         // operands: value, arguments ..
  kConditional,  // operands: test, then, else (may be null)
};

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;  // of the tree below, itself included
  Value constant;
  std::string name, member;
  Slot slot;
  BinaryOp op = BinaryOp::kAdd;
  std::vector<CompareOp> comparisons;
  std::vector<ExprPtr> operands;
  // Of calls, filters and tests.
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr rest, keyword_rest;  // *rest, **keyword_rest; may be null
  // Null: not supported, or unknown.
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};

// What happens to a variable when its scope is entered. Parameters get their values otherwise.
struct Load {
  enum class Kind : uint8_t { kParameter, kInput, kAlias, kMissing };
  int index = -1;  // in the frame of the scope's function
  Kind kind = Kind::kMissing;
  std::string input;  // kInput: the name of a variable of the input, or of a function
  Slot alias;         // kAlias: a variable further out
};

using Scope = std::vector<Load>;

enum class StatementKind : uint8_t {
  kOutput,       // exprs
  kIf,           // branches, else_body
  kFor,          // target, value, condition, filter_target; body in `scope`, else_body in `else_scope`
  kSet,          // target, value
  kSetBlock,     // target, filter (may be null), body in `scope`
  kMacro,        // target, macro
  kCallBlock,    // value (a call; null: the body's text alone, as of {% generation %}), macro
  kFilterBlock,  // value, body in `scope`
  kWith,         // exprs: target, value, ..; body in `scope`
  kBreak,
  kContinue,
};

// A function that the template defines.
struct MacroDefinition {
  std::string name;  // "": of a call block
  std::vector<ExprPtr> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool names_caller = false;  // among the parameters
  int caller_index = -1, kwargs_index = -1, varargs_index = -1;
  Scope scope;
  Body body;
  int num_slots = 0;
};

struct Statement {
  StatementKind kind = StatementKind::kOutput;
  int line = 0;
  std::vector<ExprPtr> exprs;
  std::vector<std::pair<ExprPtr, Body>> branches;
  ExprPtr target, value, condition;
  ExprPtr filter_target;  // a copy of `target` with variables of its own: a loop's condition runs ahead of its body
  Body body, else_body;
  Scope scope, condition_scope, else_scope;
  bool has_else = false, uses_loop = false;
  int loop_index = -1;
  MacroDefinition macro;
};

struct Program {
  Program() : constants(INT64_MAX) {}

  Heap constants;
  Body body;
  Scope scope;
  int num_slots = 0;
  std::vector<std::string> unsupported;  // "line 3: ..": refused when they are reached
};

}  // namespace transept::jinja

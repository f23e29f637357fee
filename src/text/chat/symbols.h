// The names of one scope while a template is compiled: Symbols of jinja2/idtracking.py. Used by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/ast.h"

namespace transept::jinja {

// A function whose frame holds variables: the template, a macro, the body of a call block. Scopes side by side share
// the variables of one name and level, as the variables of the function in Python that jinja2 writes do.
struct FunctionScope {
  const FunctionScope* parent = nullptr;
  int num_slots = 0;
  std::map<std::pair<int, std::string>, int> slots;  // by level and name

  int slot(int level, const std::string& name);
};

class Symbols final {
 public:
  struct Variable {
    const FunctionScope* function = nullptr;
    int index = -1;
    friend bool operator==(const Variable&, const Variable&) = default;
  };

  Symbols(FunctionScope& function, const Symbols* parent)
      : function_(&function), parent_(parent), level_(parent == nullptr ? 0 : parent->level_ + 1) {}

  FunctionScope& function() const { return *function_; }
  // The number of names, which a copy takes.
  size_t size() const { return symbols_.size(); }

  std::optional<Variable> find(const std::string& name) const;
  void load(const std::string& name);
  void store(const std::string& name);
  int declare_parameter(const std::string& name);
  // A variable of a loop's condition, apart from the loop's own.
  void make_private() { private_ = true; }

  // After the branches of an {% if %}, each of which began as a copy of these symbols.
  void merge(const std::vector<Symbols>& branches);

  // Where `variable` is, seen from this scope.
  Slot slot_of(const Variable& variable) const;
  Scope scope() const;

 private:
  struct Source {
    Load::Kind kind = Load::Kind::kMissing;
    Variable alias;
  };
  struct Symbol {
    int index = -1;  // in the function's frame
    Source source;
    bool stored = false;
  };

  Symbol& define(const std::string& name, const Source& source);
  std::optional<Variable> find_outside(const std::string& name) const;

  FunctionScope* function_;
  const Symbols* parent_;
  int level_;
  bool private_ = false;
  std::map<std::string, Symbol> symbols_;
};

}  // namespace transept::jinja

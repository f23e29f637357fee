#include "text/chat/symbols.h"

namespace transept::jinja {

int FunctionScope::slot(int level, const std::string& name) {
  const auto [place, is_new] = slots.try_emplace({level, name}, num_slots);
  num_slots += is_new ? 1 : 0;
  return place->second;
}

std::optional<Symbols::Variable> Symbols::find(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->parent_) {
    if (const auto found = scope->symbols_.find(name); found != scope->symbols_.end()) {
      return Variable{scope->function_, found->second.index};
    }
  }
  return std::nullopt;
}

std::optional<Symbols::Variable> Symbols::find_outside(const std::string& name) const {
  return parent_ == nullptr ? std::nullopt : parent_->find(name);
}

Symbols::Symbol& Symbols::define(const std::string& name, const Source& source) {
  Symbol& symbol = symbols_[name];
  // No name has a space in it.
  symbol.index = function_->slot(level_, private_ ? name + " of a condition" : name);
  symbol.source = source;
  return symbol;
}

void Symbols::load(const std::string& name) {
  if (!find(name).has_value()) define(name, {.kind = Load::Kind::kInput});
}

void Symbols::store(const std::string& name) {
  if (const auto found = symbols_.find(name); found != symbols_.end()) {
    found->second.stored = true;
    return;
  }
  const std::optional<Variable> outside = find_outside(name);
  define(name, outside.has_value() ? Source{Load::Kind::kAlias, *outside} : Source{}).stored = true;
}

int Symbols::declare_parameter(const std::string& name) {
  Symbol& symbol = define(name, {.kind = Load::Kind::kParameter});
  symbol.stored = true;
  return symbol.index;
}

void Symbols::merge(const std::vector<Symbols>& branches) {
  for (const Symbols& branch : branches) {
    for (const auto& [name, symbol] : branch.symbols_) {
      Symbol& merged = symbols_[name];
      const bool newly_stored = symbol.stored && !merged.stored;
      merged.index = symbol.index;
      if (merged.stored) continue;  // before the branches, or in one before this, which decided
      merged.source = symbol.source;
      if (!newly_stored) continue;
      // Stored in some branch alone: without it, the name is what it is outside.
      const std::optional<Variable> outside = find_outside(name);
      merged.source = outside.has_value() ? Source{Load::Kind::kAlias, *outside} : Source{Load::Kind::kInput, {}};
      merged.stored = true;
    }
  }
}

Slot Symbols::slot_of(const Variable& variable) const {
  Slot slot{.hops = 0, .index = variable.index};
  for (const FunctionScope* function = function_; function != variable.function; function = function->parent)
    ++slot.hops;
  return slot;
}

Scope Symbols::scope() const {
  Scope scope;
  for (const auto& [name, symbol] : symbols_) {
    Load made{.index = symbol.index, .kind = symbol.source.kind, .input = name};
    if (symbol.source.kind == Load::Kind::kAlias) made.alias = slot_of(symbol.source.alias);
    scope.push_back(std::move(made));
  }
  return scope;
}

}  // namespace transept::jinja

#include "text/chat/variables.h"

#include "base/quoted.h"
#include "text/chat/builtins.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {

Variables::Variables(Heap& heap, const Dict& inputs) : heap_(heap) {
  for (const auto& [name, value] : inputs.items) inputs_.emplace(name.text->view, value);
}

Frame& Variables::make_frame(int num_slots, Frame* parent) {
  Frame& frame = heap_.make<Frame>();
  frame.slots.resize(static_cast<size_t>(num_slots));
  frame.parent = parent;
  return frame;
}

Value& Variables::at(const Slot& slot) {
  Frame* frame = frame_;
  for (int i = 0; i < slot.hops; ++i) frame = frame->parent;
  return frame->slots[static_cast<size_t>(slot.index)];
}

Value Variables::input(const std::string& name) const {
  if (const auto found = inputs_.find(name); found != inputs_.end()) return found->second;
  const std::optional<Function> known = find_function(name);
  return known.has_value() ? function(*known) : Value();
}

Status Variables::enter(const Scope& scope) {
  RETURN_IF_ERROR(heap_.charge(static_cast<int64_t>(scope.size() / 4)));
  for (const Load& load : scope) {
    Value& value = at_index(load.index);
    switch (load.kind) {
      case Load::Kind::kParameter: break;
      case Load::Kind::kInput: value = input(load.input); break;
      case Load::Kind::kAlias: value = at(load.alias); break;
      case Load::Kind::kMissing: value = Value(); break;
    }
  }
  return ok_status();
}

void Variables::leave(const Scope& scope) {
  for (const Load& load : scope) at_index(load.index) = Value();
}

Status Variables::check_members(const Expr& target) {
  if (target.kind == ExprKind::kNamespaceMember && !at(target.slot).is(Kind::kNamespace)) {
    return invalid_argument("cannot set ", in_quotes(target.member), " of ", in_quotes(target.name),
                            ", which is no namespace");
  }
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& item : target.operands) RETURN_IF_ERROR(check_members(*item));
  }
  return ok_status();
}

Status Variables::assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::kName) {
    at(target.slot) = value;
    return ok_status();
  }
  if (target.kind == ExprKind::kNamespaceMember) {
    RETURN_IF_ERROR(check_members(target));
    if (target.member.starts_with('_'))
      return invalid_argument("a namespace cannot have the member ", in_quotes(target.member));
    return set_key(heap_, *at(target.slot).dict, heap_.borrowed_text(target.member), value);
  }
  ASSIGN_OR_RETURN(const std::vector<Value> items, items_of(heap_, value));
  if (items.size() != target.operands.size()) {
    return invalid_argument("cannot assign ", items.size(), " values to ", target.operands.size(), " names");
  }
  for (size_t i = 0; i < items.size(); ++i) RETURN_IF_ERROR(assign(*target.operands[i], items[i]));
  return ok_status();
}

}  // namespace transept::jinja

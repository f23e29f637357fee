// The variables of a template while it runs, in frames: one for each call of a function of the template. Frames live as
// long as the heap, since macros keep theirs. Used by one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/chat/ast.h"
#include "text/chat/heap.h"

namespace transept::jinja {

struct Frame final : Object {
  std::vector<Value> slots;
  Frame* parent = nullptr;  // of the function around, when this one was made
};

class Variables final {
 public:
  // All keys of `inputs` are texts, and outlive this object.
  Variables(Heap& heap, const Dict& inputs);

  Frame& make_frame(int num_slots, Frame* parent);
  // The frame that names refer to.
  Frame*& frame() { return frame_; }

  Value& at(const Slot& slot);
  Value& at_index(int index) { return frame_->slots[static_cast<size_t>(index)]; }

  // A scope begins: its variables have their first values. And ends: they have none.
  Status enter(const Scope& scope);
  void leave(const Scope& scope);

  // Gives `value` to a target: a name, names, members of namespaces. Errors: what cannot be unpacked, or is no
  // namespace.
  Status assign(const Expr& target, const Value& value);
  // Whether what has its members assigned is a namespace: known before the value is computed.
  Status check_members(const Expr& target);

 private:
  Value input(const std::string& name) const;

  Heap& heap_;
  std::unordered_map<std::string_view, Value> inputs_;
  Frame* frame_ = nullptr;
};

}  // namespace transept::jinja

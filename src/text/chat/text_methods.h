// The methods of Python's str. Immutable tables, thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "text/chat/arguments.h"
#include "text/chat/heap.h"
#include "text/chat/text_ops.h"

namespace transept::jinja {

// An attribute that is called, `self` before its arguments. Null: it exists, and is not supported.
struct MethodEntry {
  std::string_view name;
  StatusOr<Value> (*call)(Heap& heap, const Value& self, const Arguments& arguments);
};

// All attributes of str but those that begin with two underscores.
std::span<const MethodEntry> text_methods();

// str.strip(), within the steps of the heap.
StatusOr<Value> strip_text(Heap& heap, const Text& text, std::optional<std::string_view> characters, Sides sides);

// str.replace(): the first `count` places; negative: all.
StatusOr<Value> replace_text(Heap& heap, std::string_view text, std::string_view old, std::string_view with,
                             int64_t count);

}  // namespace transept::jinja

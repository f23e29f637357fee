// Tests (`is`), as jinja2/tests.py has them: all of them. Immutable tables, thread-safe; the heap is the caller's.
#pragma once

#include <string_view>

#include "text/chat/arguments.h"
#include "text/chat/heap.h"

namespace transept::jinja {

struct Test {
  std::string_view name;
  StatusOr<bool> (*apply)(Heap& heap, const Value& value, const Arguments& arguments);
};

// Null: no such test.
const Test* find_test(std::string_view name);
Status unknown_test(std::string_view name);

}  // namespace transept::jinja

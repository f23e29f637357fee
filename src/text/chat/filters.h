// Filters, as jinja2/filters.py has them, and tojson as transformers has it:
//   abs attr capitalize count d default dictsort first float format indent int items join last length list lower map
//   max min reject rejectattr replace reverse round safe select selectattr sort string sum title tojson trim unique
//   upper
// Filters that Jinja has as generators are lazy here as well: they are visited once, and errors come when they are
// visited. Immutable tables, thread-safe; the heap is the caller's.
#pragma once

#include <string_view>

#include "text/chat/arguments.h"
#include "text/chat/heap.h"

namespace transept::jinja {

struct Filter {
  std::string_view name;
  StatusOr<Value> (*apply)(Heap& heap, const Value& value, const Arguments& arguments);
  bool takes_safe = false;  // does with a text that `safe` made what it does with any
};

// Null: no such filter, or one that is not supported.
const Filter* find_filter(std::string_view name);
// Whether Jinja has such a filter.
bool is_filter_of_jinja(std::string_view name);
// kUnimplemented for a filter of Jinja, kInvalidArgument for any other.
Status unknown_filter(std::string_view name);

StatusOr<Value> apply_filter(Heap& heap, const Filter& filter, const Value& value, const Arguments& arguments);

}  // namespace transept::jinja

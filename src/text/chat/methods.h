// Attributes of values: the methods of Python's str, dict, list and tuple that templates use, `loop`, namespaces; and
// which attributes the sandbox hides. Methods:
//   str    capitalize count endswith find index isalnum isalpha isdigit islower isspace isupper join lower lstrip
//          partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split splitlines
//          startswith strip title upper
//   dict   copy get items keys values         list, tuple  copy (list), count, index
//   loop   changed cycle
// Functions; the heap is the caller's.
#pragma once

#include <string_view>

#include "text/chat/arguments.h"
#include "text/chat/heap.h"

namespace transept::jinja {

struct MethodEntry;
struct Method final : Object {
  Value self;
  const MethodEntry* entry = nullptr;
};

// value.name: the attribute, and else the item of that key; value[index]: the other way round. Both are an undefined
// value where there is neither (or the sandbox hides it). Errors: the value itself is undefined.
StatusOr<Value> attribute(Heap& heap, const Value& value, std::string_view name);
StatusOr<Value> item(Heap& heap, const Value& value, const Value& index);
// value|attr(name): the attribute alone.
StatusOr<Value> attribute_alone(Heap& heap, const Value& value, std::string_view name);

// Errors: those of Python's method; kUnimplemented for a method that is not in the list above.
StatusOr<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments);

}  // namespace transept::jinja

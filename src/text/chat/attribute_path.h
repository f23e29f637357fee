// "address.city.0": what filters such as map and sort read of each item. A value. Source: make_attrgetter of
// jinja2/filters.py.
#pragma once

#include <vector>

#include "text/chat/heap.h"

namespace transept::jinja {

class AttributePath final {
 public:
  // Missing or none: the value itself.
  static StatusOr<AttributePath> parse(Heap& heap, const Value& attribute);

  // `fallback` takes the place of what is undefined, on the way and at its end; missing or none: nothing does.
  StatusOr<Value> get(Heap& heap, Value value, const Value& fallback = Value()) const;

 private:
  std::vector<Value> parts_;
};

// What texts are compared by, unless case counts.
Value without_case(Heap& heap, const Value& value, bool case_sensitive);

}  // namespace transept::jinja

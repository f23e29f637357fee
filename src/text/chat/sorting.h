// Python's sorted(). A function.
#pragma once

#include <vector>

#include "text/chat/heap.h"

namespace transept::jinja {

// Returns the indices of the keys in ascending order, equal keys in their order; descending with `reverse`, equal keys
// still in their order. Errors: keys that have no order.
StatusOr<std::vector<size_t>> sorted_order(Heap& heap, const std::vector<Value>& keys, bool reverse);

}  // namespace transept::jinja

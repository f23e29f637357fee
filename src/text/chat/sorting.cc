#include "text/chat/sorting.h"

#include <algorithm>
#include <numeric>

#include "text/chat/value_ops.h"

namespace transept::jinja {

// A merge sort: std::stable_sort does not stop at an error, and must not be given an order that is none (NaN).
StatusOr<std::vector<size_t>> sorted_order(Heap& heap, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> merged(keys.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t i = begin; i < end; ++i) {
        bool takes_right = left == middle;
        if (left < middle && right < end) {
          const Value& a = keys[order[left]];
          const Value& b = keys[order[right]];
          ASSIGN_OR_RETURN(takes_right, reverse ? is_less(heap, a, b) : is_less(heap, b, a));
        }
        merged[i] = takes_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace transept::jinja

// The values that were inserted last, up to a capacity: for hints. Insertion, and the dropping of the oldest, are O(1).
// A value: not thread-safe.
#pragma once

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_map.h"

namespace transept {

template <typename T>
class RecentSet final {
 public:
  explicit RecentSet(size_t capacity) : capacity_(capacity) {}

  // A value that is there becomes the one that was inserted last.
  void insert(const T& value) {
    ++num_of_[value];
    order_.push_back(value);
    while (order_.size() > capacity_) {
      const auto oldest = num_of_.find(order_.front());
      if (--oldest->second == 0) num_of_.erase(oldest);
      order_.pop_front();
    }
  }
  bool contains(const T& value) const { return num_of_.contains(value); }
  void clear() {
    num_of_.clear();
    order_.clear();
  }

 private:
  size_t capacity_;
  std::deque<T> order_;                    // of insertions, repeated ones too
  absl::flat_hash_map<T, size_t> num_of_;  // in order_
};

}  // namespace transept

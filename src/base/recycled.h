// A list whose elements outlive clear(): the next push() reuses the memory of an old element, inner vectors included.
// Lists that are filled anew at every step allocate nothing once their elements have grown.
//
// T must have a clear() that empties it and keeps its memory. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace transept {

template <typename T>
class Recycled final {
 public:
  // Appends a cleared element and returns it. References to elements stay valid until the list grows beyond its
  // greatest size so far.
  T& push() {
    if (size_ == elements_.size()) {
      elements_.emplace_back();
    } else {
      elements_[size_].clear();
    }
    return elements_[size_++];
  }
  void pop_back() {
    DCHECK(size_ > 0);
    --size_;
  }
  void clear() { size_ = 0; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) {
    DCHECK(i < size_);
    return elements_[i];
  }
  const T& operator[](size_t i) const {
    DCHECK(i < size_);
    return elements_[i];
  }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  T* begin() { return elements_.data(); }
  T* end() { return elements_.data() + size_; }
  const T* begin() const { return elements_.data(); }
  const T* end() const { return elements_.data() + size_; }

  bool operator==(const Recycled& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::vector<T> elements_;  // the first size_ are in the list; the others wait for reuse
  size_t size_ = 0;
};

}  // namespace transept

// A list of at most N values, kept in place: no memory is asked for. A value; copies are of all N.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/check.h"

namespace transept {

template <typename T, size_t N>
class Few final {
 public:
  Few() = default;
  // REQUIRES: at most N.
  Few(std::initializer_list<T> values) : Few(std::span<const T>(values.begin(), values.size())) {}
  explicit Few(std::span<const T> values) : size_(values.size()) {
    CHECK(size_ <= N, size_);
    std::copy(values.begin(), values.end(), values_.begin());
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.data(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& operator[](size_t i) const { return values_[i]; }

  friend bool operator==(const Few& a, const Few& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<T, N> values_{};
  size_t size_ = 0;
};

}  // namespace transept

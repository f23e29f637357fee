// A list of at most N values, kept in place: no memory is asked for, and copies are of what is there. A value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "base/check.h"

namespace transept {

template <typename T, size_t N>
class Few final {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Few() = default;
  // REQUIRES: at most N.
  Few(std::initializer_list<T> values) : Few(std::span<const T>(values.begin(), values.size())) {}
  explicit Few(std::span<const T> values) : size_(values.size()) {
    CHECK(size_ <= N, size_);
    if (size_ > 0) std::memcpy(storage_, values.data(), size_ * sizeof(T));
  }
  Few(const Few& other) : Few(std::span<const T>(other.data(), other.size())) {}
  Few& operator=(const Few& other) {
    if (this == &other) return *this;
    size_ = other.size_;
    std::memcpy(storage_, other.storage_, size_ * sizeof(T));
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return reinterpret_cast<const T*>(storage_); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& operator[](size_t i) const { return data()[i]; }

  friend bool operator==(const Few& a, const Few& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  size_t size_ = 0;
  alignas(T) std::byte storage_[N * sizeof(T)];
};

}  // namespace transept

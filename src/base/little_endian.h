// Numbers in files: little-endian, at any address. Pure functions: thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace transept {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

// REQUIRES: sizeof(T) bytes at `from`.
template <typename T>
T little_endian(const std::byte* from) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace transept

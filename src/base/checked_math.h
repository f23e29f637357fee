// Checked arithmetic for every size that comes from a file, a flag or the wire.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace transept {

template <std::integral Int>
std::optional<Int> checked_add(Int a, Int b) {
  Int sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral Int>
std::optional<Int> checked_mul(Int a, Int b) {
  Int product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// "256KiB", "4G", "1.5GiB", "1000000": bytes. K, M, G, T and their iB forms are powers of 1024; KB, MB, ... of 1000.
StatusOr<uint64_t> parse_bytes(std::string_view text);

}  // namespace transept

// Checked arithmetic, for every size that comes from a file, a flag or the wire. Pure functions: thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace transept {

// Return nullopt on overflow.
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

// Unchecked. REQUIRES: a >= 0, b > 0, and a + b fits in int64.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Parses a number of bytes: "256KiB", "4G", "1.5GiB", "1000000". K, M, G, T and their iB forms are powers of 1024; KB,
// MB, GB, TB are powers of 1000; case does not matter. Rounds down to whole bytes. Errors: kInvalidArgument, if `text`
// is not a size or is 9e18 bytes or more.
StatusOr<uint64_t> parse_bytes(std::string_view text);

}  // namespace transept

// Numbers of rows that steps are filled up to where a device keeps what it makes of a step (tensor/device.h): few, so
// that most steps are of a number that was there before. Functions without state: thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace transept {

// Steps of more rows are not filled, and not kept: they are seldom twice the same.
inline constexpr int32_t kMostRowsOfBucket = 512;

// The least of 1, 2, 4, 8, 16, 32, 64, 128, 192, ... that is no less than `rows`, but no more than `most`. REQUIRES:
// 0 <= rows <= most.
constexpr int32_t bucket_of_rows(int32_t rows, int32_t most) {
  constexpr int32_t kStep = 64;
  if (rows == 0 || rows > kMostRowsOfBucket) return rows;
  const int32_t bucket = rows > kStep ? (rows + kStep - 1) / kStep * kStep
                                      : static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(rows)));
  return std::min(bucket, most);
}

}  // namespace transept

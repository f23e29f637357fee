// The loop that measures peaks, for every type of numbers. Each level has a source of its own, compiled with its flags:
// a function with a target attribute is never part of a loop without it.
#pragma once

#include <cstdint>

namespace transept {

inline constexpr int64_t kRounds = 100000;
inline constexpr int kChains = 16;  // independent sums: more than latency times units

#if defined(__x86_64__)
// kRounds x kChains products of all lanes. REQUIRES: the level; for bfloat16 AVX512_BF16, for float16 AVX512_FP16.
float multiply_avx2();
float multiply_avx512();
float multiply_int8();
float multiply_bf16();
float multiply_fp16();
#endif

// A level gives its vectors, Vec: what sums begin with, one more product in a sum, two sums added, and the first lane.
// REQUIRES: Level is of one source alone.
template <typename Level>
float multiply_in_registers() {
  typename Level::Vec sums[kChains];
  for (auto& sum : sums) sum = Level::begin();
  const auto a = Level::first_factor(), b = Level::second_factor();
  for (int64_t i = 0; i < kRounds; ++i) {
    for (auto& sum : sums) sum = Level::add_product(sum, a, b);
  }
  typename Level::Vec total = sums[0];
  for (int i = 1; i < kChains; ++i) total = Level::add(total, sums[i]);
  return Level::first_lane(total);
}

}  // namespace transept

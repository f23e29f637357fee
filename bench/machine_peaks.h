// What the loops that measure peaks have in common. A loop has a source of its own where a compiler knows its types
// only by a flag.
#pragma once

#include <cstdint>

namespace transept {

inline constexpr int64_t kRounds = 100000;
inline constexpr int kChains = 16;  // independent sums: more than latency times units

#if defined(__x86_64__)
// kRounds x kChains products of 32 numbers. REQUIRES: AVX512_FP16.
float multiply_fp16();
#endif

}  // namespace transept

// ggml's k-quants: blocks of 256 weights with scales of 4 to 8 bits for 16 or 32 of them each. Pure functions:
// thread-safe. Source: ggml-common.h and dequantize_row_q*_K of ggml-quants.c.
//
//   q2_K   scales [16] (4 bits of scale, 4 of minimum), codes [64] of 2 bits, d, dmin    (scale d) q - minimum dmin
//   q3_K   third bits [32], codes [64] of 2 bits, scales [12] of 6 bits, d               (scale - 32) d (q - 4)
//   q4_K   d, dmin, scales and minima [12] of 6 bits, codes [128] of 4 bits              (scale d) q - minimum dmin
//   q5_K   d, dmin, scales and minima [12] of 6 bits, fifth bits [32], codes [128]       (scale d) q - minimum dmin
//   q6_K   lower 4 bits [128], upper 2 bits [64], scales [16] of 8 bits, d               scale d (q - 32)
//
// d and dmin are float16; a minimum is of as many weights as a scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace transept {

inline constexpr int64_t kKBlockWeights = 256;

enum class KBlockType : uint8_t { kQ2, kQ3, kQ4, kQ5, kQ6 };

// Writes what a block means, in float32: scale and minimum are rounded first, then the product, then the difference.
void read_k_block(KBlockType type, const std::byte* block, std::span<float, kKBlockWeights> weights);

}  // namespace transept

// Encoders' attention over keys and values rounded to bfloat16, with products of its pairs (avx512_bf16): the
// declarations that the cpu backend and the kernel file share (ops/kernels.h has the rule that this header obeys).
// Functions without state: thread-safe for different tasks.
//
// q, K, V and the exponentials of scores are rounded to the nearest bfloat16; products of pairs are added in float32,
// as ops/gemm.h says of bfloat16; softmax is float32, and its sum that of exponentials that were not rounded. Keys are
// written in tiles of 64 of one head:
//   K [depth / 2, 64, 2], V [32, width, 2]; depth: head_dim rounded up to a multiple of 2; width: to one of 16
// Places past the last key and dimension are zero.
#pragma once

#include "attention/cpu_kernels.h"

namespace transept {

static constexpr int kPairItemRows = 48;  // rows of q whose sums stay in the first-level cache

struct PairPart {
  int64_t v, bytes;  // offset of V in bytes; K lies at 0
};

static inline PairPart pair_part(int64_t head_dim) {
  const int64_t depth = (head_dim + 1) / 2 * 2, width = (head_dim + 15) / 16 * 16;
  return {depth * kTileKeys * 2, (depth + width) * kTileKeys * 2};
}

namespace avx512_bf16 {
// Writes the keys and values of one tile. write.part: the tile's start, 64 keys at most.
void write_pair_tile(const KvWrite& write);
// Tile i begins at cache + blocks[i] * block_stride; words: [num_rows, sums_stride] bfloat16.
void attend_pairs(const AttentionTask& task);
}  // namespace avx512_bf16

}  // namespace transept

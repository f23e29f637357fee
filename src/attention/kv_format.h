// Element types of KV, and their layout in blocks of the cpu backend (ops/kernels.h has the rule that this header
// obeys). A block of one layer holds the parts of its KV heads one after another. A part is, for
//   float32, float16, bfloat16:  K [head_dim, block_size], V [block_size, head_dim]
//   int8:  scales of K float32 [block_size], scales of V float32 [block_size],
//          K uint8 [head_dim / 4, block_size, 4], V int8 [block_size / 4, head_dim, 4]; counts rounded up
// 16-bit values are rounded to the nearest, ties to even; float16 saturates at its largest finite value.
// int8: K and V of each token and head have a scale each, the largest magnitude / 127, and value = scale x integer. K's
// integers are stored with 128 added. A scale below the smallest normal float (a row of zeros, for one) becomes 0; if K
// or V of a row is not finite, both scales are NaN. Integer dot products take fours: four dimensions of a key for q.k,
// four keys of a dimension for p.V. Scales lie in the block, so they are copied, swapped and forked with it.
#pragma once

#include <stdint.h>

namespace transept {

enum class KvType : uint8_t { kFloat32, kFloat16, kBFloat16, kInt8 };
static constexpr int kNumKvTypes = 4;

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

static constexpr int kMaxHeadDim = 256;
static constexpr float kMaxFloat16 = 65504.0f;
static constexpr float kMaxInt8 = 127.0f;
static constexpr float kLeastScale = 0x1p-126f;  // the smallest normal float

// Offsets in the int8 part of one KV head, in bytes; K's scales lie at 0.
struct Int8Part {
  int64_t v_scales, k, v, bytes;
};

static inline Int8Part int8_part(int64_t block_size, int64_t head_dim) {
  Int8Part part;
  part.v_scales = block_size * 4;
  part.k = part.v_scales * 2;
  part.v = part.k + (head_dim + 3) / 4 * 4 * block_size;
  part.bytes = part.v + (block_size + 3) / 4 * 4 * head_dim;
  return part;
}

// Returns the bytes of the part of one KV head.
static inline int64_t kv_part_bytes(KvType type, int64_t block_size, int64_t head_dim) {
  switch (type) {
    case KvType::kFloat32: return 8 * block_size * head_dim;
    case KvType::kFloat16:
    case KvType::kBFloat16: return 4 * block_size * head_dim;
    case KvType::kInt8: return int8_part(block_size, head_dim).bytes;
  }
  return 0;
}

}  // namespace transept

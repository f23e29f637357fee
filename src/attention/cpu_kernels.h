// The kernels of the cpu backend, one table a level: attention, and writes to the cache, for each type of KV. Tables
// are immutable, kernels work on their task's memory alone: thread-safe for different tasks. ops/kernels.h has the rule
// that this header obeys.
#pragma once

#include <stdint.h>

#include "attention/bias_kind.h"
#include "attention/kv_format.h"

namespace transept {

static constexpr int kTileKeys = 64;  // keys a tile; the first tile begins at position 0 of a sequence

// Returns the first key of a key's tile.
static inline int64_t tile_of(int64_t key) { return key / kTileKeys * kTileKeys; }

// One row of q of one head, and the state of its softmax.
struct AttentionRow {
  const float* q;
  float* out;
  RowBias bias;
  int64_t first;  // sees keys [first, visible); none: [0, 0)
  int64_t visible;
  float* probabilities;  // [num_probabilities], or null: not wanted
  float max;
  float sum;
  // int8 KV: q = q_scale x integers, packed in `words`. q_offset is the part of a dot product that the 128 added to K
  // makes.
  void* words;
  float q_scale;
  int32_t q_offset;
};

// Rows that read the same keys of one KV head.
struct AttentionTask {
  AttentionRow* rows;
  int64_t num_rows;
  int64_t first_key;  // rows see no keys outside of [first_key, num_keys)
  int64_t num_keys;
  int head_dim;
  float scale;

  // Dense keys (blocks null): row j at k + j * k_stride and v + j * v_stride, strides in floats. Otherwise key j lies
  // in block blocks[j / block_size] at cache + blocks[j / block_size] * block_stride, in the layout of kv_format.h.
  // cache: the part of the KV head in block 0.
  const float* k;
  const float* v;
  int64_t k_stride;
  int64_t v_stride;
  const unsigned char* cache;
  const int32_t* blocks;
  int64_t block_size;
  int64_t block_stride;  // bytes

  // Memory of the task. sums: [num_rows, sums_stride], sums_stride is head_dim rounded up to a multiple of 16. keys:
  // [tile_bytes(head_dim)] for K and V of one tile, if they are not read in place. words: int8 KV only.
  float* sums;
  int64_t sums_stride;
  void* keys;
  void* words;                // [num_rows, 2 * sums_stride] bytes; encoders of encoder_int8.h: encoder_room()
  int64_t num_probabilities;  // places of each row's probabilities; set to zero past its keys
};

// Bytes of one tile of dense float32, or of blocks of any type whose block_size is kTileKeys.
static inline int64_t tile_bytes(int64_t head_dim) {
  const int64_t floats = kv_part_bytes(KvType::kFloat32, kTileKeys, head_dim);
  const int64_t integers = kv_part_bytes(KvType::kInt8, kTileKeys, head_dim);
  return floats > integers ? floats : integers;
}

// New rows of one KV head for neighbouring slots of one block.
struct KvWrite {
  const float* k;
  const float* v;
  int64_t k_stride, v_stride;  // floats between rows
  int64_t num_rows;
  int64_t head_dim;
  unsigned char* part;  // the head's part of its block
  int64_t block_size;
  int64_t offset;  // of the first slot in the block
};

struct KvKernels {
  void (*attend[kNumKvTypes])(const AttentionTask& task);  // dense keys: kFloat32
  void (*write[kNumKvTypes])(const KvWrite& write);
};

namespace generic {
extern const KvKernels kKvKernels;
}
namespace avx2 {
extern const KvKernels kKvKernels;
}
namespace avx512 {
extern const KvKernels kKvKernels;
}
namespace avx512_vnni {
void attend_int8(const AttentionTask& task);
}

}  // namespace transept

// The inner loop of the cpu backend, one function a level. ops/kernels.h has the rule that this header obeys.
#pragma once

#include <stdint.h>

#include "attention/bias_kind.h"

namespace transept {

static constexpr int kTileKeys = 64;  // keys a step of the online softmax; position 0 of a sequence begins the first

// One row of q of one head, and what is known of its softmax so far.
struct AttentionRow {
  const float* q;
  float* out;
  RowBias bias;
  int64_t visible;       // keys [0, visible) count
  float* probabilities;  // [keys], or null
  float max;
  float sum;
};

// Rows that read the same keys of one KV head.
struct AttentionTask {
  AttentionRow* rows;
  int64_t num_rows;
  int64_t num_keys;  // the most that any row sees
  int head_dim;
  float scale;

  // Dense keys (blocks null): row j at k + j * kv_stride. Otherwise key j lies in block blocks[j / block_size] at
  // cache + block * block_stride: K [head_dim, block_size], V [block_size, head_dim].
  const float* k;
  const float* v;
  int64_t k_stride;
  int64_t v_stride;
  const float* cache;
  const int32_t* blocks;
  int64_t block_size;
  int64_t block_stride;  // floats

  // Memory of the task. sums [num_rows, sums_stride], padded to a multiple of 16. keys [2, head_dim * kTileKeys]: K and
  // V of one tile, where they are not read in place.
  float* sums;
  int64_t sums_stride;
  float* keys;
  int64_t num_probabilities;  // places of each row's probabilities, zero past its keys
};

using AttendFunction = void (*)(const AttentionTask& task);

namespace generic {
void attend(const AttentionTask& task);
}
namespace avx2 {
void attend(const AttentionTask& task);
}
namespace avx512 {
void attend(const AttentionTask& task);
}

}  // namespace transept

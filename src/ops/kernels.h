// The inner loops of this folder, one table a level, chosen at run time. Tables are immutable, and kernels have no
// state: thread-safe.
//
// RULE for every file that is compiled with extra -m flags (x_avx2.cc, x_avx512.cc, x_avx512_vnni.cc, x_amx.cc) and
// every header that it includes: only C headers, immintrin.h and small headers of ours that obey this rule too; every
// function there is a template over a level's own Vec type, or static. An inline function that two levels share (any
// std template!) would be compiled once with -mavx512f and once without. The linker keeps one of the two, and a
// processor without AVX-512 stops in it with an illegal instruction.
#pragma once

#include <stdint.h>

#include "ops/activation_kind.h"
#include "ops/row_statistics.h"

namespace transept {

// The panels of a matrix of 4-bit codes (ops/nibble_panels.h): places are bytes from a panel's beginning.
struct NibbleView {
  const float* table;           // [16]
  const int32_t* input_groups;  // [k]; null: groups are runs of `group` inputs
  int64_t group;
  int64_t panel_bytes, scales_place, zeros_place;
  bool has_zero;
};

// One product, as plain pointers: y = activation(x w^T + bias) + residual (ops/gemm.h). Strides are in floats.
struct GemmJob {
  const float* x;
  int64_t x_stride;  // between rows
  int64_t m, n, k;
  int64_t depth;   // k with the padding of panels
  int64_t leaf_k;  // inputs of a leaf; k: there is one. Divides k. Products of int8 are not summed in leaves
  const void* panels;
  const float* bias;  // or null
  Activation activation;
  const float* residual;  // or null
  int64_t residual_stride;
  float* y;
  int64_t y_stride;
  NibbleView nibbles;  // of such panels alone
};

// A product whose inputs are rounded first: with int8 weights, or with bfloat16 weights on tiles.
struct RoundedJob {
  GemmJob gemm;
  int64_t num_tiles;           // of rows
  int64_t tile_step;           // every tile begins at a multiple of this many rows of x
  const void* q;               // rounded rows of x, as the kernels lay them out
  const float* row_scales;     // [m]; int8 only, as are the next four
  const int32_t* row_zeros;    // [m]
  const float* scales;         // of outputs
  const int32_t* weight_sums;  // of each output's stored weights
  bool is_wide;                // two neighbouring rounded rows for each row of x
  // The job's row i is row rows[i] of x, residual and y. [m]; null: row i.
  const int32_t* rows;
  const RowStatistics* given;  // of each row of x; null: found from x
  // int8: panels() stores the integer sums of rounded rows here and no y, and finish() makes y of them. Rows are
  // integer_stride apart, which is whole panels. Null: panels() stores y.
  int32_t* integers;
  int64_t integer_stride;
};

// Products with weights of one floating-point storage.
struct FloatGemmKernels {
  // Computes all rows of y in panels [begin, end). REQUIRES: 1 <= m <= OpKernels::few_rows.
  void (*few_rows)(const GemmJob& job, int64_t panel_begin, int64_t panel_end);
  // Computes tiles [begin, end) of num_tiles, in panels [begin, end). packed: these tiles, from gemm_pack.
  void (*tiles)(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, const float* packed,
                int64_t panel_begin, int64_t panel_end);
};

// Products with rounded inputs.
struct RoundedGemmKernels {
  int tile_step;  // RoundedJob::tile_step; 1 if inputs are wide
  int tile_rows;  // rounded rows that share one reading of the weights
  int q_bytes;    // of one rounded input
  // Rounded rows of about this many bytes stay in the second-level cache while they are multiplied with all weights.
  int64_t block_bytes;
  // Rounds rows [begin, end) of x to their places in q, row_scales and row_zeros.
  void (*quantize)(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* row_scales,
                   int32_t* row_zeros);
  // Computes tiles [begin, end) of y, in panels [begin, end).
  void (*panels)(const RoundedJob& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end);
  // Computes rows [begin, end) of y from job.integers. int8 alone. REQUIRES: job.row_zeros are 0.
  void (*finish)(const RoundedJob& job, int64_t row_begin, int64_t row_end);
};

// Products of levels that have tiles (AMX).
struct TileGemmKernels {
  int int8_vector_rows;  // up to this many rounded rows, vectors compute int8 products
  RoundedGemmKernels int8;
  RoundedGemmKernels bfloat16;  // inputs rounded to bfloat16
};

struct NormStatistics {
  float mean, variance, epsilon;
};

// The kernels of one level. Rows: x, weight, bias and y are [n] float32.
struct OpKernels {
  // Up to few_rows rows, x is read in place. Above, it is packed in tiles of at most tile_rows rows.
  int few_rows;
  int tile_rows;

  // Copies tiles [begin, end) of num_tiles, into which the m rows are divided evenly, to `packed`: [tile][k][rows].
  void (*gemm_pack)(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, float* packed);
  FloatGemmKernels gemm_float32, gemm_bfloat16, gemm_float16, gemm_nibbles;
  RoundedGemmKernels gemm_int8;
  RoundedGemmKernels gemm_nibble_groups;  // InputRounding::kGroups; neither scales nor zeros of rows, nor finish
  // Sets is_rough [m] of rows [begin, end) of x: one rounding to int8 loses more than wide inputs may (ops/gemm.h).
  // given: as RoundedJob::given. Squares are summed in the job's leaves, here and in the next.
  void (*find_rough)(const GemmJob& job, const RowStatistics* given, int64_t row_begin, int64_t row_end,
                     bool* is_rough);
  // Sets the statistics [m] of rows [begin, end) of x.
  void (*find_statistics)(const GemmJob& job, int64_t row_begin, int64_t row_end, RowStatistics* statistics);
  const TileGemmKernels* tiles;                     // or null
  const RoundedGemmKernels* gemm_rounded_bfloat16;  // inputs rounded to bfloat16, of levels without tiles; or null

  void (*layer_norm)(const float* x, int64_t n, const float* weight, const float* bias, float epsilon, float* y);
  // layer_norm in pieces, for means over more than a row: the sum, the sum of (x - mean)^2, and the normalised row.
  float (*sum)(const float* x, int64_t n);
  float (*deviation)(const float* x, int64_t n, float mean);
  void (*normalize)(const float* x, int64_t n, const NormStatistics& of, const float* weight, const float* bias,
                    float* y);
  void (*rms_norm)(const float* x, int64_t n, const float* weight, float epsilon, float* y);
  float (*log_sum_exp_max)(const float* x, int64_t n, float* max);  // sets *max; returns the sum of exp(x - *max)
  float (*max)(const float* x, int64_t n, bool* has_strange);       // -inf: none; strange: has NaN or +inf
  int64_t (*arg_max)(const float* x, int64_t n);                    // the lowest on ties; -1: none
  int64_t (*find_equal)(const float* x, int64_t n, float value);    // the first place, or -1
  // Writes the places of entries above the value to `places` [n], ascending; returns their number.
  int32_t (*find_above)(const float* x, int32_t n, float value, int32_t* places);
  void (*activate)(Activation activation, const float* x, int64_t n, float* y);
  // y = activation(gate) * x; y may be gate or x.
  void (*gated_activation)(Activation activation, const float* gate, const float* x, int64_t n, float* y);
};

namespace generic {
extern const OpKernels kOpKernels;
}
namespace avx2 {
extern const OpKernels kOpKernels;
}
namespace avx512 {
extern const OpKernels kOpKernels;
}
namespace avx512_vnni {
extern const OpKernels kOpKernels;
}
namespace avx512_bf16 {  // with the avx512_vnni table
extern const RoundedGemmKernels kBFloat16Kernels;
}
namespace amx {  // with the avx512_vnni table
extern const TileGemmKernels kTileGemmKernels;
}

// Rounded or packed rows of this many bytes stay in the second-level cache, with the panel of weights in use and the
// next one, which is prefetched. Measured: 160 to 320 KiB are alike, 640 KiB cost 5 %.
static constexpr int64_t kVectorBlockBytes = int64_t{256} << 10;

// Returns where tile i begins if m rows are divided evenly into num_tiles.
static inline int64_t even_split(int64_t m, int64_t num_tiles, int64_t i) { return m * i / num_tiles; }

// even_split() where tiles (or parts to quantise) begin at multiples of `step`.
static inline int64_t step_split(int64_t m, int64_t step, int64_t num_tiles, int64_t i) {
  const int64_t row = even_split((m + step - 1) / step, num_tiles, i) * step;
  return row < m ? row : m;
}
// Number of rounded rows for each row of x.
static inline int64_t rounded_share(bool is_wide) { return is_wide ? 2 : 1; }

// rows: RoundedJob::rows.
static inline int64_t row_of_x(const int32_t* rows, int64_t row) { return rows == nullptr ? row : rows[row]; }
static inline int64_t first_row_of_tile(const RoundedJob& job, int64_t tile) {
  return step_split(job.gemm.m, job.tile_step, job.num_tiles, tile);
}

}  // namespace transept

// The inner loops of this folder, one table a level, chosen at run time.
//
// RULE for every file that is compiled with extra -m flags (x_avx2.cc, x_avx512.cc) and every header that it includes:
// only C headers, immintrin.h and small headers of ours that obey this rule too; every function there is a template
// over a level's own Vec type, or static. An inline function that two levels share (any std template!) would be
// compiled once with -mavx512 and once without, the linker keeps either, and a processor without AVX-512 dies in it.
#pragma once

#include <stdint.h>

#include "ops/activation_kind.h"

namespace transept {

// One product, as plain pointers: y = activation(x w^T + bias) + residual (ops/gemm.h).
struct GemmJob {
  const float* x;
  int64_t x_stride;  // floats between rows
  int64_t m, n, k;
  int64_t depth;  // k with its padding, as panels have it
  const void* panels;
  const float* bias;  // or null
  Activation activation;
  const float* residual;  // or null
  int64_t residual_stride;
  float* y;
  int64_t y_stride;
};

// What a product has beside that whose inputs are rounded first: with int8 weights, or with bfloat16 ones on tiles.
struct RoundedJob {
  GemmJob gemm;
  int64_t num_tiles;           // of rows
  int64_t tile_step;           // every tile begins at a multiple of so many rows of x
  const void* q;               // rounded rows of x, as the kernels lay them out
  const float* row_scales;     // [m]; these and what follows: int8 only
  const int32_t* row_zeros;    // [m]
  const float* scales;         // of outputs
  const int32_t* weight_sums;  // of each output's weights, as they are stored
  bool is_wide;                // two rounded rows for each row of x, side by side
  // The job's row i is row rows[i] of x, residual and y; null: row i. [m]
  const int32_t* rows;
};

// Weights of one floating-point storage.
struct FloatGemmKernels {
  // All rows of panels [begin, end). REQUIRES: m <= few_rows.
  void (*few_rows)(const GemmJob& job, int64_t panel_begin, int64_t panel_end);
  // Packed tiles [begin, end) of num_tiles times panels [begin, end).
  void (*tiles)(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, const float* packed,
                int64_t panel_begin, int64_t panel_end);
};

struct RoundedGemmKernels {
  int tile_step;  // of RoundedJob, unless inputs are wide: then 1
  int tile_rows;  // rounded rows that share one reading of the weights
  int q_bytes;    // of one rounded input
  // Rounded rows of about so many bytes are multiplied with all weights in turn, out of the second-level cache.
  int64_t block_bytes;
  // Rows [begin, end) of x to their places in q, row_scales and row_zeros.
  void (*quantize)(const RoundedJob& job, int64_t row_begin, int64_t row_end, void* q, float* row_scales,
                   int32_t* row_zeros);
  // Tiles [begin, end) of y in panels [begin, end).
  void (*panels)(const RoundedJob& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end);
};

// Of levels that have tiles (AMX).
struct TileGemmKernels {
  int int8_vector_rows;  // up to so many rounded rows int8 products are the vectors'
  RoundedGemmKernels int8;
  RoundedGemmKernels bfloat16;  // inputs rounded to bfloat16
};

struct NormStatistics {
  float mean, variance, epsilon;
};

struct OpKernels {
  // Up to so many rows x is read where it lies; above it is packed, this many rows (or fewer) a tile.
  int few_rows;
  int tile_rows;

  // Copies tiles [begin, end) of num_tiles, into which the m rows are divided evenly, to packed: [tile][k][rows].
  void (*gemm_pack)(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, float* packed);
  FloatGemmKernels gemm_float32, gemm_bfloat16, gemm_float16;
  RoundedGemmKernels gemm_int8;
  // Which of rows [begin, end) of x lose more than wide inputs may by one rounding to int8. is_rough: [m].
  void (*find_rough)(const GemmJob& job, int64_t row_begin, int64_t row_end, bool* is_rough);
  const TileGemmKernels* tiles;  // or null

  void (*layer_norm)(const float* x, int64_t n, const float* weight, const float* bias, float epsilon, float* y);
  // The same in pieces, for means over more than a row: the sum, the sum of (x - mean)^2, and what is made of them.
  float (*sum)(const float* x, int64_t n);
  float (*deviation)(const float* x, int64_t n, float mean);
  void (*normalize)(const float* x, int64_t n, const NormStatistics& of, const float* weight, const float* bias,
                    float* y);
  void (*rms_norm)(const float* x, int64_t n, const float* weight, float epsilon, float* y);
  float (*log_sum_exp_max)(const float* x, int64_t n, float* max);  // *max, and the sum of exp(x - *max)
  float (*max)(const float* x, int64_t n, bool* has_strange);       // -inf: none; strange: NaN or +inf among them
  int64_t (*arg_max)(const float* x, int64_t n);
  int64_t (*find_equal)(const float* x, int64_t n, float value);  // where it is first, or -1
  // Places of entries above the value, in their order, to places [n]; returns how many there are.
  int32_t (*find_above)(const float* x, int32_t n, float value, int32_t* places);
  void (*activate)(Activation activation, const float* x, int64_t n, float* y);
  // y = activation(gate) * x; y may be either of them.
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
namespace amx {  // beside avx512_vnni's
extern const TileGemmKernels kTileGemmKernels;
}

// Rows that vectors multiply stay in the second-level cache beside two panels of weights: this one and the next, which
// is fetched meanwhile. Measured: 160 to 320 KiB are alike, 640 KiB cost 5 %.
static constexpr int64_t kVectorBlockBytes = int64_t{256} << 10;

// Rows of m, divided evenly into num_tiles: where tile i begins.
static inline int64_t even_split(int64_t m, int64_t num_tiles, int64_t i) { return m * i / num_tiles; }

// The same, if tiles (or parts that are quantised) begin at multiples of `step`.
static inline int64_t step_split(int64_t m, int64_t step, int64_t num_tiles, int64_t i) {
  const int64_t row = even_split((m + step - 1) / step, num_tiles, i) * step;
  return row < m ? row : m;
}
// Rounded rows of each row of x.
static inline int64_t rounded_share(bool is_wide) { return is_wide ? 2 : 1; }

// rows: of a RoundedJob.
static inline int64_t row_of_x(const int32_t* rows, int64_t row) { return rows == nullptr ? row : rows[row]; }
static inline int64_t first_row_of_tile(const RoundedJob& job, int64_t tile) {
  return step_split(job.gemm.m, job.tile_step, job.num_tiles, tile);
}

}  // namespace transept

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

// What a product with int8 weights has beside that.
struct Int8Job {
  GemmJob gemm;
  int64_t num_tiles;           // into which the m rows are divided evenly
  const void* q;               // quantised rows of x, by tiles: [depth / 4][rows][4], in the level's own type
  const float* row_scales;     // [m]
  const int32_t* row_zeros;    // [m]
  const float* scales;         // of outputs
  const int32_t* weight_sums;  // of each output's weights, as they are stored
  bool is_wide;                // two quantised rows for each row of x, side by side
};

// Weights of one floating-point storage.
struct FloatGemmKernels {
  // All rows of panels [begin, end). REQUIRES: m <= few_rows.
  void (*few_rows)(const GemmJob& job, int64_t panel_begin, int64_t panel_end);
  // Packed tiles [begin, end) of num_tiles times panels [begin, end).
  void (*tiles)(const GemmJob& job, int64_t num_tiles, int64_t tile_begin, int64_t tile_end, const float* packed,
                int64_t panel_begin, int64_t panel_end);
};

struct Int8GemmKernels {
  int tile_rows;  // quantised rows that share one reading of the weights
  int q_bytes;    // of one quantised input
  // Rows [begin, end) of x to their places in q, row_scales and row_zeros.
  void (*quantize)(const Int8Job& job, int64_t row_begin, int64_t row_end, void* q, float* row_scales,
                   int32_t* row_zeros);
  // Tiles [begin, end) of y in panels [begin, end).
  void (*panels)(const Int8Job& job, int64_t tile_begin, int64_t tile_end, int64_t panel_begin, int64_t panel_end);
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
  Int8GemmKernels gemm_int8;

  void (*layer_norm)(const float* x, int64_t n, const float* weight, const float* bias, float epsilon, float* y);
  // The same in pieces, for means over more than a row: the sum, the sum of (x - mean)^2, and what is made of them.
  float (*sum)(const float* x, int64_t n);
  float (*deviation)(const float* x, int64_t n, float mean);
  void (*normalize)(const float* x, int64_t n, const NormStatistics& of, const float* weight, const float* bias,
                    float* y);
  void (*rms_norm)(const float* x, int64_t n, const float* weight, float epsilon, float* y);
  float (*log_sum_exp_max)(const float* x, int64_t n, float* max);  // *max, and the sum of exp(x - *max)
  int64_t (*arg_max)(const float* x, int64_t n);
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

// Rows of m, divided evenly into num_tiles: where tile i begins.
static inline int64_t even_split(int64_t m, int64_t num_tiles, int64_t i) { return m * i / num_tiles; }

}  // namespace transept

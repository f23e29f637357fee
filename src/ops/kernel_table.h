// Fills a level's table. Each kernels_LEVEL.cc includes it, but for kernels_amx.cc, whose table tile_kernel.h fills
// (rule: ops/kernels.h).
#pragma once

#include "ops/gemm_kernel.h"
#include "ops/int8_kernel.h"
#include "ops/nibble_dot_kernel.h"
#include "ops/row_kernel.h"

namespace transept {

template <class V, class W>
constexpr FloatGemmKernels make_float_gemm_kernels() {
  return {.few_rows = &gemm_few_rows<V, W>, .tiles = &gemm_tiles<V, W>};
}

// V: the level's vectors of floats; D: its products of bytes; N: of 4-bit codes.
template <class V, class D, class N>
constexpr OpKernels make_op_kernels() {
  return {
      .few_rows = V::kFewRows,
      .tile_rows = V::kTileRows,
      .gemm_pack = &gemm_pack<V>,
      .gemm_float32 = make_float_gemm_kernels<V, Float32Weights>(),
      .gemm_bfloat16 = make_float_gemm_kernels<V, BFloat16Weights>(),
      .gemm_float16 = make_float_gemm_kernels<V, Float16Weights>(),
      .gemm_nibbles = {.few_rows = &nibble_few_rows<V>, .tiles = &nibble_tiles<V>},
      .gemm_int8 = {.tile_step = D::kStoresFours ? 4 : 1,
                    .tile_rows = D::kTileRows,
                    .q_bytes = static_cast<int>(sizeof(typename D::Input)),
                    .block_bytes = kVectorBlockBytes,
                    .quantize = &quantize_rows<V, D>,
                    .panels = &int8_panels<V, D>,
                    .finish = &int8_finish_rows<V, D>},
      .gemm_nibble_groups = {.tile_step = 1,
                             .tile_rows = N::kTileRows,
                             .q_bytes = kRoundedBytes,
                             .block_bytes = kVectorBlockBytes,
                             .quantize = &round_rows_in_groups<V>,
                             .panels = &nibble_dot_all<V, N>,
                             .finish = nullptr},
      .find_rough = &find_rough_rows<V>,
      .find_statistics = &find_row_statistics<V>,
      .tiles = nullptr,
      .gemm_rounded_bfloat16 = nullptr,
      .layer_norm = &layer_norm_row<V>,
      .sum = &sum_row<V>,
      .deviation = &deviation_row<V>,
      .normalize = &normalize_row<V>,
      .rms_norm = &rms_norm_row<V>,
      .log_sum_exp_max = &log_sum_exp_max_row<V>,
      .max = &max_row<V>,
      .arg_max = &arg_max_row<V>,
      .find_equal = &find_equal_row<V>,
      .find_above = &find_above_row<V>,
      .activate = &activate_row<V>,
      .gated_activation = &gated_activation_row<V>,
  };
}

}  // namespace transept

// Fills a level's table: included by kernels_generic.cc, kernels_avx2.cc, kernels_avx512.cc (rule: ops/kernels.h).
#pragma once

#include "ops/gemm_kernel.h"
#include "ops/row_kernel.h"

namespace transept {

template <class V>
constexpr OpKernels make_op_kernels() {
  return {
      .few_rows = V::kFewRows,
      .tile_rows = V::kTileRows,
      .gemm_few_rows = &gemm_few_rows<V>,
      .gemm_pack = &gemm_pack<V>,
      .gemm_tiles = &gemm_tiles<V>,
      .layer_norm = &layer_norm_row<V>,
      .sum = &sum_row<V>,
      .deviation = &deviation_row<V>,
      .normalize = &normalize_row<V>,
      .rms_norm = &rms_norm_row<V>,
      .log_sum_exp_max = &log_sum_exp_max_row<V>,
      .arg_max = &arg_max_row<V>,
      .activate = &activate_row<V>,
      .gated_activation = &gated_activation_row<V>,
  };
}

}  // namespace transept

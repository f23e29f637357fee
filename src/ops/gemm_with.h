// gemm(), gemm_by_columns() and gemm_parted() of ops/gemm.h with a table that is not the level's: for tests of kernels
// that the processor has no instructions for (tile_test.cc).
#pragma once

#include "ops/gemm.h"
#include "ops/kernels.h"

namespace transept {

void gemm_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
               const Epilogue& epilogue, const TensorView& y);
void gemm_by_columns_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
                          const float* bias, const TensorView& y, FunctionRef<void(const ColumnPiece&)> then);

void gemm_parted_with(const OpKernels& kernels, Context& context, const PackedMatrix& like,
                      std::span<const PartedGemm> products);

}  // namespace transept

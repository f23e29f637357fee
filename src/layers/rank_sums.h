// Products whose inputs ranks divide: each multiplies its part of the inputs, and all get the whole product, with the
// bits of one rank (ops/gemm.h, comm/reduce.h). Functions without state: one thread calls with a Context.
//
// Ranks cannot fail a layer: after a failed exchange rows are undefined and every later call of the communicator
// returns the error, so a step asks once, at its end.
#pragma once

#include <cstdint>
#include <span>

#include "ops/gemm.h"
#include "tensor/context.h"

namespace transept {

// Rows of a product of n outputs that ranks exchange at a time, the same on all ranks.
int64_t rows_at_once(const Communicator& ranks, int64_t n);

// Statistics [m] of whole rows, in step memory; x: [m, k] of this rank's inputs, in its leaves. One exchange.
std::span<const RowStatistics> whole_statistics(Context& context, const TensorView& x, int32_t leaves);

// y = x w^T + bias + residual, whole on every rank. x: this rank's inputs, in its leaves; w: their weights. REQUIRES:
// context.ranks; at most rows_at_once() rows; no activation; a processor's context.
void gemm_over_ranks(Context& context, const TensorView& x, const PackedMatrix& w, int32_t leaves,
                     const Epilogue& epilogue, const TensorView& y);

}  // namespace transept

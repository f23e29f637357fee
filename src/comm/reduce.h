// Sums over ranks, in one order: that of a tree over neighbouring ranks, ((0+1)+(2+3))+((4+5)+(6+7)). A rank's part is
// the same tree over its own share of the inputs, so the sum has the same bits for every number of ranks.
#pragma once

#include <cstdint>

#include "base/communicator.h"
#include "base/thread_pool.h"

namespace transept {

// What is added to the sum, in this order: sum + bias + residual, each rounded to float32. As ops/gemm.h adds them.
struct SumEpilogue {
  const float* bias = nullptr;      // [columns]; null: none
  const float* residual = nullptr;  // [rows, columns], rows apart by `residual_stride`; null: none. May be y itself
  int64_t residual_stride = 0;
};

// Whether a group of so many ranks has a tree: a power of two, at most 8.
constexpr bool has_sum_tree(int num_ranks) {
  return num_ranks == 1 || num_ranks == 2 || num_ranks == 4 || num_ranks == 8;
}

// y = sum over ranks of their parts + epilogue, on all ranks. Each rank has written its part, [rows, columns] float32,
// into ranks.outbox(rows * columns * 4). y: rows apart by `y_stride`. Small sums are made by every rank; large ones
// (over 32 KiB) by slices of rows, which a second exchange hands round. Allocates nothing. Errors: the communicator's.
// REQUIRES: has_sum_tree(ranks.size()); the part fits into the outbox.
Status sum_over_ranks(Communicator& ranks, ThreadPool& threads, int64_t rows, int64_t columns,
                      const SumEpilogue& epilogue, float* y, int64_t y_stride);

// The same of int32, which products of bytes are: without an epilogue, as these are scaled first. y: [count].
Status sum_over_ranks(Communicator& ranks, ThreadPool& threads, int64_t count, int32_t* y);

}  // namespace transept

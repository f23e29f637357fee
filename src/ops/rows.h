// What models do to rows between products: choosing some of them, keeping them in blocks, and adding them with a gate.
// Models touch no memory themselves.
#pragma once

#include <cstdint>
#include <span>

#include "ops/op_table.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// y = x, in order. x: the host's, y.num_elements() floats; y: [rows, n] float32, dense.
void upload(Context& context, std::span<const float> x, const TensorView& y);

// y = 0. y: [rows, n] float32, dense.
void fill_zero(Context& context, const TensorView& y);

// Row i of y is what make_row(i, row) writes, or that is added to it. Calls are concurrent, on any thread; a dry run
// makes none. The rows are made on the host: of a table in a checkpoint's file. y: [rows, n] float32.
void write_rows(Context& context, MakeRow make_row, const TensorView& y);
void add_rows(Context& context, MakeRow make_row, const TensorView& y);

// In lists of rows of another tensor: there is none.
inline constexpr int32_t kNoRow = -1;

// y[i] = x[rows[i]], or zeros for kNoRow. x: [any, n], y: [rows.size(), n] float32. REQUIRES: every other row in
// [0, x.dim(0)).
void gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y);

// y[i] = scale * table[rows[i]], or y[i] += table[rows[i]]: of a table in the device's memory. table: [any, n] float32,
// float16 or bfloat16, dense; y: [rows.size(), n] float32. REQUIRES: every row in [0, table.dim(0)).
void look_up_rows(Context& context, const TensorView& table, View<int32_t> rows, float scale, const TensorView& y);
void add_looked_up_rows(Context& context, const TensorView& table, View<int32_t> rows, const TensorView& y);

// y[i] = 0 where rows[i] is kNoRow; others do not change. y: [rows.size(), n] float32.
void clear_missing_rows(Context& context, View<int32_t> rows, const TensorView& y);

// y[rows[i]] += x[i], but for kNoRow. x: [rows.size(), n], y: [any, n] float32. REQUIRES: every other row in [0,
// y.dim(0)), and no two the same.
void scatter_add_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y);

// y += gate * x, element by element. x, y: [rows, n] float32; gate: [gate_size]: n (one a column), 1 for all columns,
// or 0 of them: the factor is 1.
void add_gated(Context& context, const TensorView& x, const float* gate, int64_t gate_size, const TensorView& y);

// y[i] = x[i] for the rows i of this kind; others do not change. x, y: [kinds.size(), n] float32.
void copy_rows_of_kind(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind, const TensorView& y);

// Rows that outlive a step lie in blocks: `cache` is uint8 [num_blocks, at least block_size * n floats], and slot s is
// row s % block_size of block s / block_size. Rows in bfloat16 can be read as well, and are widened, which is exact:
// `cache` is bfloat16 [num_blocks, at least block_size * n] then. REQUIRES: every slot lies within the cache.
//
// write: slot slots[i] = x[i]. read: y[rows[i]] = slot slots[i]. x: [slots.size(), n], y: [any, n] float32.
void write_row_slots(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                     const TensorView& cache);
void read_row_slots(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                    View<int32_t> rows, const TensorView& y);

}  // namespace transept

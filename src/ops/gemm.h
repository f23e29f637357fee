// y = x w^T: products with weight matrices, packed once at load (ops/packed_matrix.h).
//
// float32, bfloat16 and float16 weights: weights are widened, arithmetic is float32. bfloat16 weights whose format has
// bfloat16_inputs, where the level has tiles for them (AMX): rows of x are rounded to bfloat16, products are exact and
// sums float32, of every 32 inputs the even and the odd ones apart; subnormals are zero.
// int8 weights: each row of x is quantised to 255 steps between its least and its largest entry (0 among them): q =
// round(x / scale) + zero. Wide inputs: to 127 steps on either side of 0, and a second q takes what the first leaves,
// in steps of scale / 254; of outliers only: so are rows that would lose more than 1 % of their root mean square by one
// rounding (which moves each entry but zeros by 1 / sqrt(12) steps, by estimate), and the others as ever. Sums are
// exact integers, then scaled. A row that holds infinity or NaN gives NaN.
//
// Batch invariance: every element of y is the sum over k in the one order that its instruction level fixes for k,
// whatever the number of rows or threads. So a row's bits do not depend on what else is in the batch.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/isa.h"
#include "ops/activation_kind.h"
#include "ops/packed_matrix.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

struct OpKernels;

// What is done to y before it is stored: y = activation(x w^T + bias) + residual.
struct Epilogue {
  const float* bias = nullptr;  // [n], null: none
  Activation activation = Activation::kNone;
  TensorView residual = {};  // [m, n] float32 or empty; may be y itself
};

// y = activation(x w^T + bias) + residual. x: [m, k], y: [m, n] float32, rows may be strided, columns dense; y does not
// overlap x. Runs on the context's threads; counts one product. m = 0 does nothing.
void gemm(Context& context, const TensorView& x, const PackedMatrix& w, const Epilogue& epilogue, const TensorView& y);

// Columns [begin, end) of every row of a product, on a thread of the context's. y: [m, end - begin].
struct ColumnPiece {
  int64_t begin, end;
  TensorView y;
  int thread;
};

// The same, in pieces of kPieceColumns columns (the last may have fewer): `then` is called on the thread that has just
// computed a piece, while it lies in its cache. What pieces there are depends on n alone. For few rows: every piece
// reads all of x. y: [m, n] keeps the whole product. Or [num_threads * m, kPieceColumns], where it is not needed later:
// each thread computes one piece after the other in rows of its own, which stay in its cache. Not for wide inputs.
constexpr int64_t kPieceColumns = 32 * kPanelColumns;
void gemm_by_columns(Context& context, const TensorView& x, const PackedMatrix& w, const float* bias,
                     const TensorView& y, FunctionRef<void(const ColumnPiece&)> then);

// A matrix in parts of kPartColumns columns each, of which the last may be used to less than that: columns that were
// chosen out of a larger one (PackedMatrix::copy_rows).
constexpr int64_t kPartColumns = 4 * kPanelColumns;
struct GemmPart {
  const PackedMatrix* w = nullptr;  // n = kPartColumns
  const float* bias = nullptr;      // [kPartColumns], or null
};

// y = x w^T + bias of a few rows.
struct PartedGemm {
  TensorView x;                     // [m, k]
  std::span<const GemmPart> parts;  // as many as y's columns want
  TensorView y;                     // [m, n]
};

// Products with parted matrices of their own, of one k and format, which are `like`'s (its outputs play no part). A
// part is one thread's task, so that small products of different rows fill all threads together. The bits are gemm()'s.
// Not for wide inputs.
void gemm_parted(Context& context, const PackedMatrix& like, std::span<const PartedGemm> products);

// Whether products with such weights round x to bfloat16 at this level.
bool multiplies_in_bfloat16(const WeightFormat& format, Isa isa);

// The obvious triple loop in double precision over an unpacked w [n, k]: the oracle. x and w are taken as they are:
// what a storage rounds is the caller's to round first.
void gemm_reference(const TensorView& x, const TensorView& w, const Epilogue& epilogue, const TensorView& y);

// The same with a table that is not the level's: for tests of kernels that the processor has no instructions for
// (tile_test.cc).
void gemm_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
               const Epilogue& epilogue, const TensorView& y);
void gemm_by_columns_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
                          const float* bias, const TensorView& y, FunctionRef<void(const ColumnPiece&)> then);
void gemm_parted_with(const OpKernels& kernels, Context& context, const PackedMatrix& like,
                      std::span<const PartedGemm> products);

}  // namespace transept

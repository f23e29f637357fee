// y = x w^T: products with weight matrices, packed once at load (ops/packed_matrix.h). Functions without state. One
// thread calls with a Context; the work runs on the context's threads.
//
// float32, bfloat16 and float16 weights: weights are widened, arithmetic is float32.
// bfloat16 weights whose inputs are rounded to bfloat16 (InputRounding), at a level that multiplies it (avx512_bf16 and
// amx): rows of x are rounded to bfloat16. Products are exact and sums float32; vectors add the second input of a
// pair before the first, tiles (AMX) the even and the odd ones of every 32 separately. Subnormals are zero. int8
// weights: each row of x is quantised to 255 steps between its least and its largest entry (0 included): q = round(x /
// scale) + zero. Sums are exact integers, then scaled. A row that holds infinity or NaN gives NaN. int8 weights with
// wide inputs (InputRounding::kWide): a row is quantised to 127 steps on either side of 0. A second q takes the
// remainder, in steps of scale / 254. With kOutliers, this is done for a row only if one rounding would lose more than
// 1 % of its root mean square. The estimate: rounding moves each entry other than 0 by 1 / sqrt(12) steps.
//
// int4 and float4 weights: each is widened to float32 where it is used, and the bits are those of the product with the
// float32 matrix of such numbers. int4 weights whose inputs are rounded in groups (InputRounding::kGroups): of each
// group of a row q = round(x / scale), scale = max |x| / 127. A group's products are an exact integer, then scaled and
// added in float32, in the order of groups.
//
// Batch invariance: every element of y is the sum over k in the one order that its instruction level fixes for k, for
// any number of rows and threads. So the bits of a row do not depend on the rest of the batch.
//
// Leaves: products whose inputs ranks may divide are summed in num_leaves(k, format) leaves, also where one rank has
// them all. Leaf i is the sum over inputs [i k / L, (i + 1) k / L), and leaves are added in a tree:
// ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)). N ranks, N a power of two up to L, have L / N neighbouring leaves
// each: a part of the tree, whose upper part is added over ranks (comm/reduce.h). Sums of int8 are exact integers, so
// they have the same bits in any order.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/isa.h"
#include "ops/activation_kind.h"
#include "ops/packed_matrix.h"
#include "ops/row_statistics.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

struct OpKernels;

// What adds up the integer sums of ranks that have a part of the inputs each (int8 weights). Used by one thread.
class IntegerSums {
 public:
  virtual ~IntegerSums() = default;

  // Returns where this rank's sums go, `count` of them.
  virtual std::span<int32_t> part(int64_t count) = 0;
  // Sets `whole` to the sums of what each rank has put into its part.
  virtual void add_parts(std::span<int32_t> whole) = 0;
};

// The rows that a product reads.
struct GemmInput {
  TensorView x;  // [m, k] float32, rows may be strided, columns dense
  // [m]: of the whole rows, where x is a part of their inputs. int8 weights round x by them. Null: found from x.
  const RowStatistics* statistics = nullptr;
  // How many leaves x w^T is summed in. int8 weights: how many squares of x are summed in (kOutliers).
  int32_t leaves = 1;
  // int8 weights, beside statistics: y is made of all ranks' sums, once for each of the two kinds of rows of kOutliers
  // that are there. Null: of x alone.
  IntegerSums* ranks = nullptr;

  GemmInput(const TensorView& rows, const RowStatistics* of_rows = nullptr,  // NOLINT(google-explicit-constructor)
            int32_t num_leaves = 1, IntegerSums* of_ranks = nullptr)
      : x(rows), statistics(of_rows), leaves(num_leaves), ranks(of_ranks) {}
};

// The leaves of a whole product of k inputs: a power of two, at most kMostLeaves, which divides k (for panels of two
// inputs: into pairs; for inputs rounded to bfloat16: into whole tiles of AMX; for int4: into eights, or into
// groups where inputs are rounded so). All levels have the same.
constexpr int32_t kMostLeaves = 8;
int32_t num_leaves(int64_t k, const PackedFormat& format);

// Applied to y before it is stored: y = activation(x w^T + bias) + residual.
struct Epilogue {
  const float* bias = nullptr;  // [n], null: none
  Activation activation = Activation::kNone;
  TensorView residual = {};  // [m, n] float32 or empty; may be y itself
};

// Computes y = activation(x w^T + bias) + residual. y: [m, n] float32, rows may be strided, columns dense; y does not
// overlap x. With statistics that row_statistics() finds of the same x, the bits are those without. Adds one to
// Context::counters->num_matmuls. m = 0 does nothing. A dry run takes step memory only. Wrong shapes, and leaves that
// do not divide k, fail a CHECK.
void gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
          const TensorView& y);

// Finds the statistics [m] of the rows of x [m, k]: low, high and strange, and for InputRounding::kOutliers squares and
// count, as products at this level find them. Squares are summed in leaves, as products are. A dry run does nothing.
void row_statistics(Context& context, const TensorView& x, std::span<RowStatistics> statistics, int32_t leaves = 1);

// Columns [begin, end) of every row of a product. y: [m, end - begin].
struct ColumnPiece {
  int64_t begin, end;
  TensorView y;
  int thread;  // of the context's, that computed the piece
};

// Computes y = x w^T + bias in pieces of kPieceColumns columns (the last may have fewer), and calls `then` for each on
// the thread that has just computed it, while the piece is in that thread's cache. Calls are concurrent; a dry run
// makes none. The pieces depend on n alone. For few rows: every piece reads all of x.
// y: [m, n] keeps the whole product. If it is not needed later, y is [num_threads * m, kPieceColumns]: each thread
// computes its pieces one after the other in rows of its own, which stay in its cache.
// REQUIRES: no wide inputs.
constexpr int64_t kPieceColumns = 32 * kPanelColumns;
void gemm_by_columns(Context& context, const TensorView& x, const PackedMatrix& w, const float* bias,
                     const TensorView& y, FunctionRef<void(const ColumnPiece&)> then);

// A part of a matrix that is divided into parts of kPartColumns columns each; the last may be used partly. For columns
// chosen from a larger matrix (PackedMatrix::copy_rows).
constexpr int64_t kPartColumns = 4 * kPanelColumns;
struct GemmPart {
  const PackedMatrix* w = nullptr;  // n = kPartColumns
  const float* bias = nullptr;      // [kPartColumns], or null
};

// y = x w^T + bias of a few rows.
struct PartedGemm {
  TensorView x;                     // [m, k]
  std::span<const GemmPart> parts;  // ceil(n / kPartColumns)
  TensorView y;                     // [m, n], n > 0
};

// Computes products, each with a parted matrix of its own. All parts have the k and format of `like`, whose values are
// not read. Each part is one task, so small products of different rows fill all threads together. The bits are
// gemm()'s. Adds one to num_matmuls for each product. REQUIRES: no wide inputs.
void gemm_parted(Context& context, const PackedMatrix& like, std::span<const PartedGemm> products);

// Returns whether products with such weights round x to bfloat16 at this level.
bool multiplies_in_bfloat16(const PackedFormat& format, Isa isa);

// Triple loop in double precision over an unpacked w [n, k]: the oracle. x and w are used unrounded: the caller rounds
// what a storage would round.
void gemm_reference(const TensorView& x, const TensorView& w, const Epilogue& epilogue, const TensorView& y);

// The functions above with a given table: for tests of kernels whose instructions the processor lacks (tile_test.cc).
void gemm_with(const OpKernels& kernels, Context& context, const GemmInput& input, const PackedMatrix& w,
               const Epilogue& epilogue, const TensorView& y);
void gemm_by_columns_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
                          const float* bias, const TensorView& y, FunctionRef<void(const ColumnPiece&)> then);
void gemm_parted_with(const OpKernels& kernels, Context& context, const PackedMatrix& like,
                      std::span<const PartedGemm> products);

}  // namespace transept

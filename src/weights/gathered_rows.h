// A large transposed tensor of which steps read rows: each row is gathered into row-major memory when it is first read,
// with the rows beside it, which lie in the same lines of the file. Loading copies none of them.
//
// Owned by the WeightMap; borrows file and memory. Thread-safe. Allocates nothing after construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "weights/matrix_source.h"
#include "weights/weight_view.h"

namespace transept {

class GatheredRows final {
 public:
  // stored: [n, k] of floats, whose rows are neighbours and whose columns are `column_stride` elements apart; its data
  // are the elements of strided_span() (weights/strides.h). memory: of n * k elements. REQUIRES: stored.file !=
  // nullptr.
  GatheredRows(WeightView stored, int64_t column_stride, std::span<std::byte> memory);

  // Gathers rows [begin, begin + count), unless they are there. REQUIRES: a range inside the tensor.
  void gather(int64_t begin, int64_t count);
  // The same for all rows. threads: may be null.
  void gather_all(ThreadPool* threads);

  // The tensor in row-major order. Only gathered rows have values.
  const WeightView& tensor() const { return gathered_; }

 private:
  void gather_block(int64_t block);

  const WeightView stored_, gathered_;
  const int64_t column_stride_;
  const std::span<std::byte> memory_;
  std::unique_ptr<Mutex[]> writes_;               // by block: held while it is gathered
  std::unique_ptr<std::atomic<bool>[]> is_here_;  // by block: set when its rows are written
};

// Its rows as a matrix. Borrows them.
class GatheredMatrix final : public MatrixSource {
 public:
  explicit GatheredMatrix(GatheredRows& rows);

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override;

 private:
  GatheredRows& rows_;
};

}  // namespace transept

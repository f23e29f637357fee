// Rows of a table by id, read straight from the checkpoint, in whatever form it has them: a step needs few of them, so
// loading copies none. Immutable after loading, so thread-safe. Borrows the WeightMap's files, or owns a computed
// table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "layers/sinusoidal.h"
#include "tensor/context.h"
#include "tensor/device.h"
#include "tensor/tensor.h"
#include "weights/matrix_source.h"
#include "weights/weight_map.h"

namespace transept {

class Embedding final {
 public:
  // The table `name`: [num_rows, dim]. Errors: those of WeightMap::matrix.
  static StatusOr<Embedding> load(WeightMap& weights, std::string_view name, int64_t num_rows, int64_t dim);

  // A table that the model has made: [values.size() / dim, dim].
  static Embedding of(std::vector<float> values, int64_t dim);

  // A table of sinusoidal positions. Keeps the first kKeptRows rows and computes those beyond at each look-up:
  // positions that a model claims and no text reaches take no memory.
  static Embedding sinusoidal(SinusoidalRows rows, int64_t num_rows);
  static constexpr int64_t kKeptRows = 4096;

  // y[i] = scale * table[ids[i] + offset], on the context's threads. y: [ids.size(), dim] float32. REQUIRES: every id +
  // offset in [0, num_rows).
  void look_up(Context& context, View<int32_t> ids, int32_t offset, float scale, const TensorView& y) const;

  // y[i] += table[ids[i] + offset]. Shapes and requirement as look_up.
  void add(Context& context, View<int32_t> ids, int32_t offset, const TensorView& y) const;
  // y[i] += table[row_of(i)], which is called on any thread. REQUIRES: every result in [0, num_rows).
  void add(Context& context, FunctionRef<int64_t(int64_t i)> row_of, const TensorView& y) const;

  // The same, with a copy of the table in the device's memory if that is not the host's: lists of ids go there, and not
  // rows, which have the same bits. Without effect where the table is of codes or of rows that are computed, and where
  // it has no room: an operand's, and an eighth of what is free.
  Embedding placed(DeviceMemory& memory) &&;
  bool is_placed() const { return !there_.empty(); }

  int64_t num_rows() const { return num_rows_; }
  int64_t dim() const { return table_->k(); }

 private:
  Embedding(std::shared_ptr<const MatrixSource> table, int64_t num_rows)
      : table_(std::move(table)), num_rows_(num_rows) {}

  void read_row(int64_t index, std::span<float> out) const;
  // The rows of the ids where all of them are on the device; none: the host has to make them.
  std::optional<View<int32_t>> rows_there(const Context& context, View<int32_t> ids, int32_t offset,
                                          std::vector<int32_t>& room) const;

  std::shared_ptr<const MatrixSource> table_;  // of a computed table the kept rows
  int64_t num_rows_;
  std::optional<SinusoidalRows> computed_;
  std::shared_ptr<const std::vector<float>> kept_;  // of a table that is not the checkpoint's; table_ views it
  TensorView there_;                                // on the device, all rows of table_; empty: not placed
  std::shared_ptr<const void> there_keeper_;
};

}  // namespace transept

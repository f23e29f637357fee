// Rows of a table by id, read straight from the checkpoint: a step needs few of them, so none is copied at load.
// Immutable after loading, so thread-safe. Borrows the WeightMap's files, or owns a computed table.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/context.h"
#include "tensor/tensor.h"
#include "weights/weight_map.h"

namespace transept {

class Embedding final {
 public:
  // The table `name`: [num_rows, dim]. Errors: missing or misshapen, by name.
  static StatusOr<Embedding> load(WeightMap& weights, std::string_view name, int64_t num_rows, int64_t dim);

  // A computed table: values are [num_rows, dim].
  static Embedding from_values(std::vector<float> values, int64_t num_rows, int64_t dim);

  // y[i] = scale * table[ids[i] + offset]. REQUIRES: every id + offset in [0, num_rows); y: [ids.size(), dim] float32.
  void look_up(Context& context, View<int32_t> ids, int32_t offset, float scale, const TensorView& y) const;

  // y[i] += table[ids[i] + offset].
  void add(Context& context, View<int32_t> ids, int32_t offset, const TensorView& y) const;

  int64_t num_rows() const { return table_.shape[0]; }
  int64_t dim() const { return table_.shape[1]; }
  const WeightView& table() const { return table_; }

 private:
  explicit Embedding(WeightView table) : table_(std::move(table)) {}

  WeightView table_;
  bool is_large_ = false;
  std::shared_ptr<const std::vector<float>> values_;  // of a computed table, which table_ views
};

}  // namespace transept

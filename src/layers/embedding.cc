#include "layers/embedding.h"

#include <algorithm>

#include "base/check.h"
#include "ops/rows.h"
#include "weights/tensor_matrix.h"

namespace transept {
StatusOr<Embedding> Embedding::load(WeightMap& weights, std::string_view name, int64_t num_rows, int64_t dim) {
  ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> table, weights.matrix(name, {num_rows, dim}, WeightUse::kRead));
  return Embedding(std::move(table), num_rows);
}

Embedding Embedding::of(std::vector<float> values, int64_t dim) {
  const int64_t num_rows = static_cast<int64_t>(values.size()) / dim;
  auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  WeightView table{"", DType::kFloat32, {num_rows, dim}, std::as_bytes(std::span(*kept))};
  Embedding embedding(std::make_shared<TensorMatrix>(std::move(table), false), num_rows);
  embedding.kept_ = std::move(kept);
  return embedding;
}

Embedding Embedding::sinusoidal(SinusoidalRows rows, int64_t num_rows) {
  const int64_t num_kept = std::min(num_rows, kKeptRows), dim = rows.dim();
  std::vector<float> values(static_cast<size_t>(num_kept * dim));
  for (int64_t i = 0; i < num_kept; ++i) {
    rows.compute(i, std::span(values).subspan(static_cast<size_t>(i * dim), static_cast<size_t>(dim)));
  }
  Embedding embedding = of(std::move(values), dim);
  embedding.num_rows_ = num_rows;
  embedding.computed_ = std::move(rows);
  return embedding;
}

void Embedding::read_row(int64_t index, std::span<float> out) const {
  if (index >= table_->n()) return computed_->compute(index, out);
  table_->read_rows(index, 1, {0, dim()}, out);
}

void Embedding::look_up(Context& context, View<int32_t> ids, int32_t offset, float scale, const TensorView& y) const {
  DCHECK(context.dry_run || y.dim(0) == static_cast<int64_t>(ids.size()));
  const auto make_row = [&](int64_t i, std::span<float> row) {
    read_row(int64_t{ids[static_cast<size_t>(i)]} + offset, row);
    if (scale == 1.0f) return;
    for (float& value : row) value *= scale;
  };
  write_rows(context, make_row, y);
}

void Embedding::add(Context& context, View<int32_t> ids, int32_t offset, const TensorView& y) const {
  add(
      context, [&](int64_t i) { return int64_t{ids[static_cast<size_t>(i)]} + offset; }, y);
}

void Embedding::add(Context& context, FunctionRef<int64_t(int64_t i)> row_of, const TensorView& y) const {
  add_rows(
      context, [&](int64_t i, std::span<float> row) { read_row(row_of(i), row); }, y);
}

}  // namespace transept

#include "layers/embedding.h"

#include <algorithm>

#include "base/check.h"
#include "weights/tensor_matrix.h"

namespace transept {
namespace {

// Rows a task: enough work to be worth handing out.
constexpr int64_t kRowsPerTask = 16;

}  // namespace

StatusOr<Embedding> Embedding::load(WeightMap& weights, std::string_view name, int64_t num_rows, int64_t dim) {
  ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> table, weights.matrix(name, {num_rows, dim}, WeightUse::kRead));
  return Embedding(std::move(table), num_rows);
}

Embedding Embedding::sinusoidal(SinusoidalRows rows, int64_t num_rows) {
  const int64_t num_kept = std::min(num_rows, kKeptRows), dim = rows.dim();
  std::vector<float> values(static_cast<size_t>(num_kept * dim));
  for (int64_t i = 0; i < num_kept; ++i) {
    rows.compute(i, std::span(values).subspan(static_cast<size_t>(i * dim), static_cast<size_t>(dim)));
  }
  auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  WeightView table{"", DType::kFloat32, {num_kept, dim}, std::as_bytes(std::span(*kept))};
  Embedding embedding(std::make_shared<TensorMatrix>(std::move(table), false), num_rows);
  embedding.computed_ = std::move(rows);
  embedding.kept_ = std::move(kept);
  return embedding;
}

void Embedding::read_row(int64_t index, std::span<float> out) const {
  if (index >= table_->n()) return computed_->compute(index, out);
  table_->read_rows(index, 1, {0, dim()}, out);
}

void Embedding::look_up(Context& context, View<int32_t> ids, int32_t offset, float scale, const TensorView& y) const {
  if (context.dry_run) return;
  const int64_t num_ids = static_cast<int64_t>(ids.size());
  context.threads.parallel_for((num_ids + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    for (int64_t i = task * kRowsPerTask; i < std::min(num_ids, (task + 1) * kRowsPerTask); ++i) {
      float* row = y.row(i);
      read_row(int64_t{ids[static_cast<size_t>(i)]} + offset, std::span(row, static_cast<size_t>(dim())));
      if (scale == 1.0f) continue;
      for (int64_t j = 0; j < dim(); ++j) row[j] *= scale;
    }
  });
}

void Embedding::add(Context& context, View<int32_t> ids, int32_t offset, const TensorView& y) const {
  Arena::Scope scope(context.arena);
  const int64_t num_ids = static_cast<int64_t>(ids.size());
  const TensorView rows = context.arena.tensor(DType::kFloat32, {num_ids, dim()});
  if (context.dry_run) return;
  look_up(context, ids, offset, 1.0f, rows);
  for (int64_t i = 0; i < num_ids; ++i) {
    float* out = y.row(i);
    const float* row = rows.row(i);
    for (int64_t j = 0; j < dim(); ++j) out[j] += row[j];
  }
}

}  // namespace transept

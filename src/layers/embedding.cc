#include "layers/embedding.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/rows.h"
#include "weights/tensor_matrix.h"

namespace transept {
namespace {

constexpr uint64_t kShareOfFree = 8;        // of a device's memory, what a table may take
constexpr int64_t kPlacedAtOnce = 1 << 20;  // numbers

constexpr uint64_t whole_words(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

// Of this type, which they came from: exact.
void write_numbers(std::span<const float> values, DType dtype, std::span<std::byte> to) {
  if (dtype == DType::kFloat32) return static_cast<void>(std::memcpy(to.data(), values.data(), values.size_bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = dtype == DType::kFloat16 ? float_to_float16(values[i]) : float_to_bfloat16(values[i]);
    std::memcpy(to.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

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

Embedding Embedding::placed(DeviceMemory& memory) && {
  const WeightFormat& format = table_->format();
  const bool is_of_floats = format == kFloat32Format || format == kFloat16Format || format == kBFloat16Format;
  if (memory.is_host() || !is_of_floats || table_->n() == 0) return std::move(*this);
  const DType dtype = format == kFloat32Format   ? DType::kFloat32
                      : format == kFloat16Format ? DType::kFloat16
                                                 : DType::kBFloat16;
  const int64_t n = table_->n(), k = table_->k();
  const size_t row_bytes = static_cast<size_t>(k) * dtype_bytes(dtype);
  const uint64_t bytes = whole_words(static_cast<uint64_t>(n) * row_bytes);
  if (bytes > memory.max_operand_bytes() || bytes > memory.free_bytes() / kShareOfFree) return std::move(*this);
  const DeviceBuffer buffer = memory.allocate(bytes, MemoryUse::kWeights);
  if (buffer.data() == nullptr) return std::move(*this);
  // Even numbers of rows are whole words.
  const int64_t most = std::max<int64_t>(2, kPlacedAtOnce / k / 2 * 2);
  std::vector<float> values;
  std::vector<std::byte> written;
  for (int64_t begin = 0; begin < n; begin += most) {
    const int64_t count = std::min(most, n - begin);
    values.resize(static_cast<size_t>(count * k));
    table_->read_rows(begin, count, {0, k}, values);
    written.assign(whole_words(static_cast<uint64_t>(count) * row_bytes), std::byte{0});
    write_numbers(values, dtype, written);
    memory.copy_in(buffer.data() + static_cast<size_t>(begin) * row_bytes, written.data(), written.size());
  }
  there_ = TensorView(buffer.data(), dtype, {n, k});
  there_keeper_ = buffer.keeper();
  return std::move(*this);
}

// A dry run takes the way that may want more step memory.
std::optional<View<int32_t>> Embedding::rows_there(const Context& context, View<int32_t> ids, int32_t offset,
                                                   std::vector<int32_t>& room) const {
  if (!is_placed() || context.dry_run) return std::nullopt;
  const int64_t end = there_.dim(0);
  if (end < num_rows_ && std::ranges::any_of(ids, [&](int32_t id) { return int64_t{id} + offset >= end; })) {
    return std::nullopt;
  }
  if (offset == 0) return ids;
  room.resize(ids.size());
  std::ranges::transform(ids, room.begin(), [&](int32_t id) { return id + offset; });
  return View<int32_t>(room);
}

void Embedding::look_up(Context& context, View<int32_t> ids, int32_t offset, float scale, const TensorView& y) const {
  DCHECK(context.dry_run || y.dim(0) == static_cast<int64_t>(ids.size()));
  std::vector<int32_t> room;
  if (const auto rows = rows_there(context, ids, offset, room); rows.has_value()) {
    return look_up_rows(context, there_, *rows, scale, y);
  }
  const auto make_row = [&](int64_t i, std::span<float> row) {
    read_row(int64_t{ids[static_cast<size_t>(i)]} + offset, row);
    if (scale == 1.0f) return;
    for (float& value : row) value *= scale;
  };
  write_rows(context, make_row, y);
}

void Embedding::add(Context& context, View<int32_t> ids, int32_t offset, const TensorView& y) const {
  std::vector<int32_t> room;
  if (const auto rows = rows_there(context, ids, offset, room); rows.has_value()) {
    return add_looked_up_rows(context, there_, *rows, y);
  }
  add(
      context, [&](int64_t i) { return int64_t{ids[static_cast<size_t>(i)]} + offset; }, y);
}

void Embedding::add(Context& context, FunctionRef<int64_t(int64_t i)> row_of, const TensorView& y) const {
  add_rows(
      context, [&](int64_t i, std::span<float> row) { read_row(row_of(i), row); }, y);
}

}  // namespace transept

#include "layers/linear.h"

#include <algorithm>

#include "base/checked_math.h"

namespace transept {
namespace {

// Of the checkpoint's pages no more than about this is in memory at a time.
constexpr int64_t kPackBytes = int64_t{16} << 20;

// Packs the rows of one matrix behind `first_row`: a task for each panel's worth of rows, so that threads do not share
// the cache lines of a panel more than at its ends.
void pack_rows(const WeightView& weight, int64_t first_row, PackedMatrix& packed, ThreadPool& threads) {
  const int64_t rows = weight.shape[0], k = packed.k();
  const int64_t row_bytes = std::max<int64_t>(k * static_cast<int64_t>(dtype_bytes(weight.dtype)), 1);
  const int64_t step = round_up(std::max(kPackBytes / row_bytes, kPanelColumns), kPanelColumns);
  for (int64_t from = 0; from < rows; from += step) {
    const int64_t to = std::min(rows, from + step);
    threads.parallel_for(ceil_div(to - from, kPanelColumns), [&](int64_t task, int) {
      const int64_t begin = from + task * kPanelColumns, end = std::min(to, begin + kPanelColumns);
      std::vector<float> values(static_cast<size_t>((end - begin) * k));
      widen_to_float(weight, begin * k, values);
      packed.set_rows(first_row + begin, end - begin, values);
    });
    release_pages(weight, from * k, (to - from) * k);
  }
}

WeightFormat common_format(const std::vector<WeightView>& matrices) {
  const auto differs = [&](const WeightView& matrix) { return matrix.dtype != matrices.front().dtype; };
  const bool is_mixed = std::any_of(matrices.begin(), matrices.end(), differs);
  return is_mixed ? kFloat32Format : weights_of(matrices.front().dtype);
}

StatusOr<PackedMatrix> pack_sources(WeightMap& weights, const LinearSpec& spec, const MatrixToPack& matrix,
                                    const PackOptions& packing) {
  std::vector<WeightView> parts;
  for (const LinearSource& source : spec.sources) {
    ASSIGN_OR_RETURN(WeightView part,
                     weights.get(source.weight, {source.out_features, spec.in_features}, WeightUse::kPacked));
    parts.push_back(std::move(part));
  }
  PackedMatrix packed = make_packed(packing, matrix, common_format(parts));
  int64_t row = 0;
  for (const WeightView& part : parts) {
    pack_rows(part, row, packed, packing.threads);
    row += part.shape[0];
  }
  return packed;
}

// Side by side, 0 where a source has none; empty where none has one.
StatusOr<std::vector<float>> read_biases(WeightMap& weights, const LinearSpec& spec, int64_t out_features) {
  const bool has_bias = std::any_of(spec.sources.begin(), spec.sources.end(),
                                    [](const LinearSource& source) { return !source.bias.empty(); });
  std::vector<float> bias(has_bias ? static_cast<size_t>(out_features) : 0);
  size_t row = 0;
  for (const LinearSource& source : spec.sources) {
    const auto count = static_cast<size_t>(source.out_features);
    if (!source.bias.empty()) {
      ASSIGN_OR_RETURN(const WeightView values, weights.get(source.bias, {source.out_features}));
      widen_to_float(values, 0, std::span(bias).subspan(row, count));
    }
    row += count;
  }
  return bias;
}

}  // namespace

StatusOr<Linear> Linear::load(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing) {
  int64_t out_features = 0;
  for (const LinearSource& source : spec.sources) out_features += source.out_features;
  const MatrixToPack matrix{spec.sources.front().weight, out_features, spec.in_features, spec.inputs};
  ASSIGN_OR_RETURN(std::unique_ptr<PackedMatrix> packed, find_packed(packing, weights, matrix));
  if (packed == nullptr) {
    ASSIGN_OR_RETURN(PackedMatrix made, pack_sources(weights, spec, matrix, packing));
    packed = std::make_unique<PackedMatrix>(std::move(made));
  }
  ASSIGN_OR_RETURN(std::vector<float> bias, read_biases(weights, spec, out_features));
  return Linear(std::move(*packed), std::move(bias));
}

void Linear::forward(Context& context, const TensorView& x, const Epilogue& epilogue, const TensorView& y) const {
  DCHECK(epilogue.bias == nullptr);
  Epilogue whole = epilogue;
  whole.bias = bias_.empty() ? nullptr : bias_.data();
  gemm(context, x, packed_, whole, y);
}

void Linear::forward_by_columns(Context& context, const TensorView& x, const TensorView& y,
                                FunctionRef<void(const ColumnPiece&)> then) const {
  gemm_by_columns(context, x, packed_, bias_.empty() ? nullptr : bias_.data(), y, then);
}

}  // namespace transept

#include "layers/linear.h"

#include <algorithm>

#include "layers/tap_source.h"
#include "layers/transposed_source.h"

namespace transept {
namespace {

int64_t num_outputs(const LinearSpec& spec) {
  int64_t count = 0;
  for (const LinearSource& source : spec.sources) count += source.out_features;
  return count;
}

// The outputs of the whole product that this rank keeps.
std::vector<IndexRange> rows_of_rank(const LinearSpec& spec, const Ranks& ranks) {
  if (spec.split != Split::kOutputs) return {{0, num_outputs(spec)}};
  std::vector<IndexRange> rows;
  int64_t first = 0;
  for (const LinearSource& source : spec.sources) {
    CHECK(source.out_features % source.blocks == 0);
    const int64_t block_rows = source.out_features / source.blocks;
    const IndexRange share = share_of(block_rows, spec.unit, ranks);
    for (int64_t block = 0; block < source.blocks; ++block, first += block_rows) {
      rows.push_back({first + share.begin, first + share.end});
    }
  }
  return rows;
}

StatusOr<std::unique_ptr<MatrixSource>> open_source(WeightMap& weights, const LinearSource& source, int64_t k) {
  constexpr WeightUse kUse = WeightUse::kPacked;
  const int64_t n = source.out_features, kernel = source.kernel;
  const int64_t height = source.patch_height, width = source.patch_width;
  if (const int64_t depth = source.patch_depth; depth > 0) {
    return weights.matrix(source.weight, {n, k / (depth * height * width), depth, height, width}, kUse);
  }
  const auto by_taps = [&](std::unique_ptr<MatrixSource> by_channel) {
    return std::unique_ptr<MatrixSource>(
        std::make_unique<TapSource>(std::move(by_channel), kernel, source.before_kernel));
  };
  if (height > 0) {
    ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> patches,
                     weights.matrix(source.weight, {n, k / (height * width), height, width}, kUse));
    return kernel > 0 ? by_taps(std::move(patches)) : std::move(patches);
  }
  // Libraries turn a Conv1D into rows of outputs when they quantise it.
  if (source.is_transposed && weights.is_quantized(source.weight)) return weights.matrix(source.weight, {n, k}, kUse);
  if (source.is_transposed) {
    ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> by_input, weights.matrix(source.weight, {k, n}, kUse));
    return std::unique_ptr<MatrixSource>(std::make_unique<TransposedSource>(std::move(by_input)));
  }
  if (kernel == 0) return weights.matrix(source.weight, {n, k}, kUse);
  if (source.before_kernel > 0) {
    ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> all, weights.matrix(source.weight, {n, k}, kUse));
    return by_taps(std::move(all));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<MatrixSource> by_channel,
                   weights.matrix(source.weight, {n, k / kernel, kernel}, kUse));
  return by_taps(std::move(by_channel));
}

StatusOr<MatrixSources> open_sources(WeightMap& weights, const LinearSpec& spec) {
  MatrixSources sources;
  for (const LinearSource& source : spec.sources) {
    ASSIGN_OR_RETURN(sources.emplace_back(), open_source(weights, source, spec.in_features));
  }
  return sources;
}

// Side by side, 0 where a source has none; empty where none has one.
StatusOr<std::vector<float>> read_biases(WeightMap& weights, const LinearSpec& spec) {
  const bool has_bias = std::any_of(spec.sources.begin(), spec.sources.end(),
                                    [](const LinearSource& source) { return !source.bias.empty(); });
  std::vector<float> bias(has_bias ? static_cast<size_t>(num_outputs(spec)) : 0);
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

std::vector<float> rows_of(const std::vector<float>& bias, const std::vector<IndexRange>& rows) {
  std::vector<float> kept;
  for (const IndexRange& range : rows) {
    if (!bias.empty()) kept.insert(kept.end(), bias.begin() + range.begin, bias.begin() + range.end);
  }
  return kept;
}

}  // namespace

StatusOr<Linear> Linear::load(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing) {
  const Ranks& ranks = packing.ranks;
  MatrixToLoad matrix{spec.sources.front().weight, num_outputs(spec), spec.in_features, spec.inputs};
  matrix.rows = rows_of_rank(spec, ranks);
  if (spec.split == Split::kInputs) matrix.columns = share_of(spec.in_features, spec.unit, ranks);
  ASSIGN_OR_RETURN(PackedMatrix packed,
                   load_matrix(packing, weights, matrix, [&] { return open_sources(weights, spec); }));
  ASSIGN_OR_RETURN(std::vector<float> bias, read_biases(weights, spec));
  // Sums of all ranks have it once.
  if (spec.split == Split::kInputs && ranks.rank != 0) bias.clear();
  DeviceMemory& memory = weights.memory();
  return Linear(std::move(packed).placed(memory), DeviceFloats(rows_of(bias, matrix.rows), memory));
}

void Linear::forward(Context& context, const GemmInput& x, const Epilogue& epilogue, const TensorView& y) const {
  DCHECK(epilogue.bias == nullptr);
  Epilogue whole = epilogue;
  whole.bias = bias_.data();
  gemm(context, x, packed_, whole, y);
}

void Linear::forward_by_columns(Context& context, const TensorView& x, const TensorView& y,
                                FunctionRef<void(const ColumnPiece&)> then) const {
  gemm_by_columns(context, x, packed_, bias_.data(), y, then);
}

}  // namespace transept

#include "layers/linear.h"

#include <algorithm>

#include "layers/rank_sums.h"
#include "layers/tap_source.h"
#include "layers/transposed_source.h"
#include "ops/round_inputs.h"

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

// Sources side by side that are one product: their inputs are rounded in one way, and their codes mean the same.
struct Run {
  LinearSpec spec;
  InputQuantization inputs;
  MatrixSources sources = {};  // empty: not opened yet
};

StatusOr<std::vector<Run>> runs_of(WeightMap& weights, const LinearSpec& spec) {
  std::vector<Run> runs;
  for (const LinearSource& source : spec.sources) {
    ASSIGN_OR_RETURN(const InputQuantization inputs, weights.inputs_of(source.weight, spec.in_features));
    if (runs.empty() || runs.back().inputs != inputs) {
      runs.push_back({spec, inputs});
      runs.back().spec.sources.clear();
    }
    runs.back().spec.sources.push_back(source);
  }
  for (Run& run : runs) {
    if (!weights.rounds_inputs()) run.inputs = {};
  }
  return runs;
}

// How many sources each matrix of a packed folder holds.
std::vector<size_t> counts_of_folder(const PackTag& tag, const LinearSpec& spec) {
  std::vector<size_t> counts;
  for (size_t i = 0; i < spec.sources.size(); i += counts.back()) {
    counts.push_back(spec.sources.size() - i);
    const auto found = tag.matrices.find(spec.sources[i].weight);
    if (found == tag.matrices.end()) continue;
    int64_t outputs = 0;
    for (size_t count = 1; i + count <= spec.sources.size(); ++count) {
      outputs += spec.sources[i + count - 1].out_features;
      if (outputs == found->second.n) counts.back() = count;
    }
  }
  return counts;
}

// Divides a run where the codes of its sources mean different things.
Status divide(WeightMap& weights, const PackOptions& packing, Run run, std::vector<Run>& runs) {
  std::vector<size_t> counts = {run.spec.sources.size()};
  const auto is_coded = [&](const LinearSource& source) { return weights.is_quantized(source.weight); };
  if (const PackTag* tag = weights.pack_tag(); tag != nullptr) {
    counts = counts_of_folder(*tag, run.spec);
  } else if (counts[0] > 1 && std::ranges::all_of(run.spec.sources, is_coded)) {
    ASSIGN_OR_RETURN(run.sources, open_sources(weights, run.spec));
    const MatrixToLoad matrix{run.spec.sources.front().weight, num_outputs(run.spec), run.spec.in_features,
                              run.spec.inputs};
    counts = divide_by_codes(packing, matrix, run.sources);
  }
  size_t first = 0;
  for (const size_t count : counts) {
    Run& part = runs.emplace_back(Run{run.spec, run.inputs});
    const auto of = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + count);
    part.spec.sources.assign(run.spec.sources.begin() + of, run.spec.sources.begin() + end);
    if (!run.sources.empty()) {
      std::move(run.sources.begin() + of, run.sources.begin() + end, std::back_inserter(part.sources));
    }
    first += count;
  }
  return ok_status();
}

// Groups find their scales on the rank that has them.
Status check_whole_groups(const WeightMap& weights, const MatrixToLoad& matrix, const InputQuantization& inputs) {
  const auto cuts = [&](int64_t column) { return column != matrix.k && column % inputs.group != 0; };
  if (inputs.group == 0 || (!cuts(matrix.columns.begin) && !cuts(matrix.columns.end))) return ok_status();
  return weights.tensor_error(matrix.name, str_cat("groups of ", inputs.group, " inputs are divided among ranks"));
}

}  // namespace

StatusOr<Linear> Linear::load(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing) {
  if (packing.elsewhere != nullptr && packing.elsewhere->has(spec.sources.front().weight)) {
    return load(weights, spec, packing.of_elsewhere());
  }
  ASSIGN_OR_RETURN(std::vector<Run> by_inputs, runs_of(weights, spec));
  std::vector<Run> runs;
  for (Run& run : by_inputs) RETURN_IF_ERROR(divide(weights, packing, std::move(run), runs));
  const auto load_run = [&](Run& run) {
    return load_one(weights, run.spec, packing, run.inputs, [&]() -> StatusOr<MatrixSources> {
      if (run.sources.empty()) return open_sources(weights, run.spec);
      return std::move(run.sources);
    });
  };
  if (runs.size() == 1) return load_run(runs.front());
  Linear whole(PackedMatrix(0, spec.in_features, {}, packing.pool), {}, {}, 1, {});
  for (Run& run : runs) {
    ASSIGN_OR_RETURN(Linear part, load_run(run));
    whole.parts_.push_back(std::move(part));
  }
  return whole;
}

StatusOr<Linear> Linear::load_one(WeightMap& weights, const LinearSpec& spec, const PackOptions& packing,
                                  const InputQuantization& inputs, FunctionRef<StatusOr<MatrixSources>()> open) {
  const Ranks& ranks = packing.ranks;
  MatrixToLoad matrix{spec.sources.front().weight, num_outputs(spec), spec.in_features, spec.inputs};
  matrix.rows = rows_of_rank(spec, ranks);
  if (spec.split == Split::kInputs) {
    matrix.columns = share_of(spec.in_features, spec.unit, ranks);
    RETURN_IF_ERROR(check_whole_groups(weights, matrix, inputs));
  }
  ASSIGN_OR_RETURN(PackedMatrix packed, load_matrix(packing, weights, matrix, open));
  for (const LinearSource& source : spec.sources) {
    if (inputs.rounds() && packing.report != nullptr) packing.report->back().inputs.emplace_back(source.weight, inputs);
  }
  ASSIGN_OR_RETURN(const std::vector<float> bias, read_biases(weights, spec));
  const bool divides_inputs = spec.split == Split::kInputs;
  // Unequal parts are no runs of leaves.
  const bool has_leaves = divides_inputs && packed.k() * ranks.count == matrix.k;
  const int32_t leaves = has_leaves ? transept::num_leaves(matrix.k, packed.format()) : 1;
  DeviceMemory& memory = weights.memory();
  return Linear(std::move(packed).placed(memory), DeviceFloats(rows_of(bias, matrix.rows), memory), inputs, leaves,
                divides_inputs ? ranks : Ranks{});
}

Status Linear::check_division(const WeightMap& weights, const std::string& name) const {
  std::string why;
  if (divides(part_, num_leaves_, "leaves", &why)) return ok_status();
  return unimplemented(weights.source(), ": ", name, ": ", why);
}

int64_t Linear::out_features() const {
  int64_t count = packed_.n();
  for (const Linear& part : parts_) count += part.out_features();
  return count;
}

TensorView Linear::seen_inputs(Context& context, const GemmInput& x) const {
  if (!inputs_.rounds()) return x.x;
  const int64_t rows = x.x.dim(0), columns = x.x.dim(1);
  const std::span<float> memory = context.arena.allocate_span<float>(rows * columns);
  const TensorView rounded(memory.data(), DType::kFloat32, {rows, columns});
  round_inputs(context, x.x, inputs_, inputs_.group > 0 ? nullptr : x.statistics, rounded);
  return rounded;
}

void Linear::forward(Context& context, const GemmInput& x, const Epilogue& epilogue, const TensorView& y) const {
  DCHECK(epilogue.bias == nullptr);
  int64_t column = 0;
  for (const Linear& part : parts_) {
    const int64_t end = column + part.out_features();
    Epilogue own = epilogue;
    if (own.residual.raw != nullptr) own.residual = own.residual.columns(column, end);
    part.forward(context, x, own, y.columns(column, end));
    column = end;
  }
  if (!parts_.empty()) return;
  DCHECK(x.leaves == 1 && x.ranks == nullptr);
  if (part_.count > 1 && context.ranks != nullptr) return forward_over_ranks(context, x.x, epilogue, y);
  Epilogue whole = epilogue;
  whole.bias = part_.rank == 0 ? bias_.data() : nullptr;
  const int32_t leaves = leaves_of_part();
  if (!inputs_.rounds()) return gemm(context, {x.x, x.statistics, leaves}, packed_, whole, y);
  const Arena::Scope scope(context.arena);
  gemm(context, {seen_inputs(context, x), x.statistics, leaves}, packed_, whole, y);
}

void Linear::forward_over_ranks(Context& context, const TensorView& x, const Epilogue& epilogue,
                                const TensorView& y) const {
  DCHECK(context.ranks->rank() == part_.rank && context.ranks->size() == part_.count && divides_alike());
  const int64_t step = rows_at_once(*context.ranks, packed_.n());
  for (int64_t begin = 0; begin < x.dim(0); begin += step) {
    const int64_t end = std::min(begin + step, x.dim(0));
    const Arena::Scope scope(context.arena);
    const TensorView some = x.rows(begin, end);
    const bool finds_scales = inputs_.rounds() && !inputs_.is_static() && inputs_.group == 0;
    const RowStatistics* found = finds_scales ? whole_statistics(context, some, leaves_of_part()).data() : nullptr;
    Epilogue own{.bias = bias_.data(), .activation = epilogue.activation, .residual = {}};
    if (epilogue.residual.raw != nullptr) own.residual = epilogue.residual.rows(begin, end);
    gemm_over_ranks(context, seen_inputs(context, {some, found}), packed_, leaves_of_part(), own, y.rows(begin, end));
  }
}

void Linear::forward_by_columns(Context& context, const TensorView& x, const TensorView& y,
                                FunctionRef<void(const ColumnPiece&)> then) const {
  CHECK(parts_.empty());
  const Arena::Scope scope(context.arena);
  gemm_by_columns(context, seen_inputs(context, x), packed_, bias_.data(), y, then);
}

}  // namespace transept

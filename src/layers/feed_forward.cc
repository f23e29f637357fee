#include "layers/feed_forward.h"

#include <algorithm>

#include "ops/activation.h"

namespace transept {
namespace {

// Hidden rows are several times as wide as others, and an encode's are the largest thing that a step holds: so many
// are made at once.
constexpr int64_t kRowsAtOnce = 512;

}  // namespace

StatusOr<FeedForward> FeedForward::load(WeightMap& weights, const Options& options, const PackOptions& packing) {
  const auto source = [&](const std::string& prefix, int64_t out) {
    return LinearSource{.weight = prefix + ".weight",
                        .bias = options.has_biases ? prefix + ".bias" : "",
                        .out_features = out,
                        .is_transposed = options.is_transposed};
  };
  CHECK(options.gate.empty() || !options.up_holds_gate);
  const int64_t blocks = options.up_holds_gate ? 2 : 1;
  LinearSpec up_spec{.sources = {source(options.up, blocks * options.hidden_dim)},
                     .in_features = options.dim,
                     .split = Split::kOutputs};
  up_spec.sources[0].blocks = blocks;
  if (!options.gate.empty()) up_spec.sources.insert(up_spec.sources.begin(), source(options.gate, options.hidden_dim));
  ASSIGN_OR_RETURN(Linear up, Linear::load(weights, up_spec, packing));
  const LinearSpec down_spec{
      {source(options.down, options.dim)}, options.hidden_dim, options.down_inputs, Split::kInputs};
  ASSIGN_OR_RETURN(Linear down, Linear::load(weights, down_spec, packing));
  RETURN_IF_ERROR(down.check_division(weights, down_spec.sources[0].weight));
  FeedForward loaded(std::move(up), std::move(down), options);
  if (options.inner_norm.empty()) return loaded;
  if (packing.ranks.count > 1) {
    return unimplemented(weights.source(), ": ", options.inner_norm,
                         ": one norm over all hidden columns: --tensor-parallel-size 1");
  }
  ASSIGN_OR_RETURN(loaded.inner_norm_,
                   Norm::load(weights, options.inner_norm, options.hidden_dim, options.inner_norm_options));
  return loaded;
}

void FeedForward::forward(Context& context, const TensorView& x, const TensorView& residual,
                          const TensorView& y) const {
  // Not even shares: fewer rows must never want more memory than the most that were measured.
  for (int64_t begin = 0; begin < x.dim(0); begin += kRowsAtOnce) {
    const int64_t end = std::min(begin + kRowsAtOnce, x.dim(0));
    const TensorView added = residual.rank == 0 ? residual : residual.rows(begin, end);
    forward_some(context, x.rows(begin, end), added, y.rows(begin, end));
  }
}

void FeedForward::forward_some(Context& context, const TensorView& x, const TensorView& residual,
                               const TensorView& y) const {
  Arena::Scope scope(context.arena);
  const TensorView hidden = context.arena.tensor(DType::kFloat32, {x.dim(0), up_.out_features()});
  if (!gated_) {
    up_.forward(context, x, {.activation = activation_}, hidden);
    if (!inner_norm_.empty()) inner_norm_.forward(context, hidden, hidden);
    down_.forward(context, hidden, {.residual = residual}, y);
    return;
  }
  up_.forward(context, x, {}, hidden);
  const int64_t width = down_.in_features();
  const TensorView first = hidden.columns(0, width), second = hidden.columns(width, 2 * width);
  gated_activation(context, activation_, gate_first_ ? first : second, gate_first_ ? second : first, first);
  if (!inner_norm_.empty()) inner_norm_.forward(context, first, first);
  down_.forward(context, first, {.residual = residual}, y);
}

}  // namespace transept

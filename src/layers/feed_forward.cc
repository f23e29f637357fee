#include "layers/feed_forward.h"

namespace transept {

StatusOr<FeedForward> FeedForward::load(WeightMap& weights, const Options& options, ThreadPool& threads) {
  const auto source = [](const std::string& prefix, int64_t out) {
    return LinearSource{prefix + ".weight", prefix + ".bias", out};
  };
  ASSIGN_OR_RETURN(Linear up, Linear::load(weights, {{source(options.up, options.hidden_dim)}, options.dim}, threads));
  ASSIGN_OR_RETURN(Linear down,
                   Linear::load(weights, {{source(options.down, options.dim)}, options.hidden_dim}, threads));
  return FeedForward(std::move(up), std::move(down), options.activation);
}

void FeedForward::forward(Context& context, const TensorView& x, const TensorView& residual,
                          const TensorView& y) const {
  Arena::Scope scope(context.arena);
  const TensorView hidden = context.arena.tensor(DType::kFloat32, {x.dim(0), up_.out_features()});
  up_.forward(context, x, {.activation = activation_}, hidden);
  down_.forward(context, hidden, {.residual = residual}, y);
}

}  // namespace transept

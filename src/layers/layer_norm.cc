#include "layers/layer_norm.h"

namespace transept {

StatusOr<LayerNorm> LayerNorm::load(WeightMap& weights, const std::string& prefix, int64_t dim,
                                    const Options& options) {
  ASSIGN_OR_RETURN(const WeightView weight, weights.get(prefix + ".weight", {dim}));
  std::vector<float> bias(static_cast<size_t>(dim));
  if (options.has_bias) {
    ASSIGN_OR_RETURN(const WeightView view, weights.get(prefix + ".bias", {dim}));
    bias = to_floats(view);
  }
  return LayerNorm(to_floats(weight), std::move(bias), options.epsilon);
}

}  // namespace transept

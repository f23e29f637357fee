#include "layers/layer_norm.h"

namespace transept {

StatusOr<LayerNorm> LayerNorm::load(WeightMap& weights, const std::string& prefix, int64_t dim, float epsilon) {
  ASSIGN_OR_RETURN(const WeightView weight, weights.get(prefix + ".weight", {dim}));
  ASSIGN_OR_RETURN(const WeightView bias, weights.get(prefix + ".bias", {dim}));
  return LayerNorm(to_floats(weight), to_floats(bias), epsilon);
}

}  // namespace transept

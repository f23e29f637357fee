#include "layers/rms_norm.h"

namespace transept {

StatusOr<RmsNorm> RmsNorm::load(WeightMap& weights, const std::string& prefix, int64_t dim, float epsilon,
                                float scale) {
  ASSIGN_OR_RETURN(const WeightView view, weights.get(prefix + ".weight", {dim}));
  std::vector<float> weight = to_floats(view);
  for (float& value : weight) value *= scale;
  return RmsNorm(std::move(weight), epsilon);
}

}  // namespace transept

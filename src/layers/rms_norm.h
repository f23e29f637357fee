// Root mean square norm (ops/norm.h) with a weight from a checkpoint (`prefix`.weight: [dim]). Immutable, thread-safe;
// owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ops/norm.h"
#include "weights/weight_map.h"

namespace transept {

class RmsNorm final {
 public:
  // `scale`: a factor on the result, folded into the weight. Errors: a missing or misshapen tensor, by name.
  static StatusOr<RmsNorm> load(WeightMap& weights, const std::string& prefix, int64_t dim, float epsilon,
                                float scale = 1);

  // x, y: [rows, dim] float32; may be the same.
  void forward(Context& context, const TensorView& x, const TensorView& y) const {
    rms_norm(context, x, weight_.data(), epsilon_, y);
  }

 private:
  RmsNorm(std::vector<float> weight, float epsilon) : weight_(std::move(weight)), epsilon_(epsilon) {}

  std::vector<float> weight_;
  float epsilon_;
};

}  // namespace transept

// torch.nn.LayerNorm with weights from a checkpoint (`prefix`.weight, `prefix`.bias: [dim]). Immutable, thread-safe;
// owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ops/norm.h"
#include "weights/weight_map.h"

namespace transept {

class LayerNorm final {
 public:
  struct Options {
    float epsilon = 1e-5f;
    bool has_bias = true;
  };
  // Errors: a missing or misshapen tensor, by name.
  static StatusOr<LayerNorm> load(WeightMap& weights, const std::string& prefix, int64_t dim, const Options& options);
  static StatusOr<LayerNorm> load(WeightMap& weights, const std::string& prefix, int64_t dim) {
    return load(weights, prefix, dim, {});
  }

  // x, y: [rows, dim] float32; may be the same.
  void forward(Context& context, const TensorView& x, const TensorView& y) const {
    layer_norm(context, x, weight_.data(), bias_.data(), epsilon_, y);
  }

 private:
  LayerNorm(std::vector<float> weight, std::vector<float> bias, float epsilon)
      : weight_(std::move(weight)), bias_(std::move(bias)), epsilon_(epsilon) {}

  std::vector<float> weight_, bias_;
  float epsilon_;
};

}  // namespace transept

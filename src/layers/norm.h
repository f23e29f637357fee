// A norm over the last axis with weights from a checkpoint: torch.nn.LayerNorm, or a root mean square norm
// (ops/norm.h). Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "tensor/context.h"
#include "tensor/device_floats.h"
#include "tensor/tensor.h"
#include "weights/weight_map.h"

namespace transept {

enum class NormKind : uint8_t { kLayer, kRms };

struct NormOptions {
  NormKind kind = NormKind::kLayer;
  float epsilon = 1e-5f;
  bool has_bias = true;  // kLayer only: an RMS norm has none
  float scale = 1;       // a factor on the result, folded into weight and bias
};

class Norm final {
 public:
  // No norm: not to be called.
  Norm() = default;
  // Reads `prefix`.weight, and `prefix`.bias if there is one: [dim]. Errors: a missing or misshapen tensor, by name.
  static StatusOr<Norm> load(WeightMap& weights, const std::string& prefix, int64_t dim, const NormOptions& options);

  bool empty() const { return weight_.empty(); }

  // x, y: [rows, dim] float32; may be the same.
  void forward(Context& context, const TensorView& x, const TensorView& y) const;

  // Normalises each head by itself, in place. x: [rows, num_heads * dim] float32.
  void forward_heads(Context& context, const TensorView& x, int64_t num_heads) const;

 private:
  Norm(NormKind kind, float epsilon, DeviceFloats weight, DeviceFloats bias)
      : kind_(kind), epsilon_(epsilon), weight_(std::move(weight)), bias_(std::move(bias)) {}

  NormKind kind_ = NormKind::kLayer;
  float epsilon_ = 0;
  DeviceFloats weight_;
  DeviceFloats bias_;  // kLayer: zeros if the checkpoint has none; kRms: empty
};

}  // namespace transept

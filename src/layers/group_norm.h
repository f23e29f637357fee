// torch.nn.GroupNorm of one group, over channels last, with weights from a checkpoint (`prefix`.weight, `prefix`.bias:
// [dim]). Immutable, thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "ops/norm.h"
#include "tensor/device_floats.h"
#include "weights/weight_map.h"

namespace transept {

class GroupNorm final {
 public:
  // Errors: a missing or misshapen tensor, by name.
  static StatusOr<GroupNorm> load(WeightMap& weights, const std::string& prefix, int64_t dim, float epsilon = 1e-5f) {
    ASSIGN_OR_RETURN(const WeightView weight, weights.get(prefix + ".weight", {dim}));
    ASSIGN_OR_RETURN(const WeightView bias, weights.get(prefix + ".bias", {dim}));
    DeviceMemory& memory = weights.memory();
    return GroupNorm(DeviceFloats(to_floats(weight), memory), DeviceFloats(to_floats(bias), memory), epsilon);
  }

  // x, y: [rows, dim] float32, all of x one group; may be the same.
  void forward(Context& context, const TensorView& x, const TensorView& y) const {
    group_norm(context, x, weight_.data(), bias_.data(), epsilon_, y);
  }

 private:
  GroupNorm(DeviceFloats weight, DeviceFloats bias, float epsilon)
      : weight_(std::move(weight)), bias_(std::move(bias)), epsilon_(epsilon) {}

  DeviceFloats weight_, bias_;
  float epsilon_;
};

}  // namespace transept

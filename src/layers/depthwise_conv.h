// torch.nn.Conv2d of 3 by 3 with a group for each channel and a padding of 1, over the rows of a map, and its residual:
// DaViT's positions (Ding et al. 2022; transformers' Florence2VisionSpatialBlock). The checkpoint's values are float32
// here, whatever type the model's matrices have: there are few. Immutable, thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "layers/window_partition.h"
#include "ops/channels.h"
#include "tensor/device_floats.h"
#include "weights/weight_map.h"

namespace transept {

class DepthwiseConv final {
 public:
  // Reads `prefix`.weight, [dim, 1, 3, 3], and `prefix`.bias, [dim]. Errors: a missing or misshapen tensor, by name.
  static StatusOr<DepthwiseConv> load(WeightMap& weights, const std::string& prefix, int64_t dim) {
    ASSIGN_OR_RETURN(const WeightView weight, weights.get(prefix + ".weight", {dim, 1, 3, 3}));
    ASSIGN_OR_RETURN(const WeightView bias, weights.get(prefix + ".bias", {dim}));
    const std::vector<float> by_channel = to_floats(weight);
    std::vector<float> by_tap(by_channel.size());
    for (int64_t i = 0; i < 9 * dim; ++i) {
      by_tap[static_cast<size_t>(i % 9 * dim + i / 9)] = by_channel[static_cast<size_t>(i)];
    }
    DeviceMemory& memory = weights.memory();
    return DepthwiseConv(DeviceFloats(std::move(by_tap), memory), DeviceFloats(to_floats(bias), memory));
  }

  // y = x + conv(x) + bias. x, y: [map.num_rows(), dim] float32, not the same memory.
  void forward(Context& context, const MapSize& map, const TensorView& x, const TensorView& y) const {
    add_depthwise_conv(context, x, map.height, map.width, weight_.data(), bias_.data(), y);
  }

 private:
  DepthwiseConv(DeviceFloats weight, DeviceFloats bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}

  DeviceFloats weight_, bias_;  // weight: [9, dim]
};

}  // namespace transept

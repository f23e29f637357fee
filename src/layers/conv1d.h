// torch.nn.Conv1d with weights from a checkpoint, over time-major rows: a linear layer over windows of them. Immutable
// after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "layers/linear.h"
#include "ops/conv1d.h"
#include "weights/weight_map.h"

namespace transept {

class Conv1d final {
 public:
  struct Options {
    std::string prefix;  // `prefix`.weight: [out_channels, in_channels, kernel]; `prefix`.bias: [out_channels]
    int64_t in_channels = 0, out_channels = 0;
    Conv1dShape shape;
    bool has_bias = true;
    LayerInputs inputs = LayerInputs::kConvolution;
  };
  // Errors: those of Linear::load.
  static StatusOr<Conv1d> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // y = activation(conv(x) + bias) + residual. x: [length + 2 padding, in_channels] float32 (padded_rows); y:
  // [output_length(length), out_channels] float32. REQUIRES: `epilogue.bias` is null, as the layer has its own.
  void forward(Context& context, const TensorView& x, const Epilogue& epilogue, const TensorView& y) const;

  const Conv1dShape& shape() const { return shape_; }
  int64_t in_channels() const { return windows_.in_features() / shape_.kernel; }
  int64_t out_channels() const { return windows_.out_features(); }
  int64_t output_length(int64_t length) const { return conv1d_output_length(length, shape_); }

 private:
  Conv1d(Linear windows, const Conv1dShape& shape) : windows_(std::move(windows)), shape_(shape) {}

  Linear windows_;  // from kernel * in_channels, by tap, then by channel
  Conv1dShape shape_;
};

}  // namespace transept

#include "layers/conv1d.h"

namespace transept {

StatusOr<Conv1d> Conv1d::load(WeightMap& weights, const Options& options, const PackOptions& packing) {
  const int64_t kernel = options.shape.kernel;
  const LinearSource source{.weight = options.prefix + ".weight",
                            .bias = options.has_bias ? options.prefix + ".bias" : "",
                            .out_features = options.out_channels,
                            .kernel = kernel};
  ASSIGN_OR_RETURN(Linear windows,
                   Linear::load(weights, {{source}, kernel * options.in_channels, options.inputs}, packing));
  return Conv1d(std::move(windows), options.shape);
}

void Conv1d::forward(Context& context, const TensorView& x, const Epilogue& epilogue, const TensorView& y) const {
  windows_.forward(context, conv1d_windows(x, shape_), epilogue, y);
}

}  // namespace transept

#include "layers/norm.h"

#include "base/check.h"
#include "ops/norm.h"

namespace transept {

StatusOr<Norm> Norm::load(WeightMap& weights, const std::string& prefix, int64_t dim, const NormOptions& options) {
  ASSIGN_OR_RETURN(const WeightView view, weights.get(prefix + ".weight", {dim}));
  std::vector<float> weight = to_floats(view), bias;
  if (options.kind == NormKind::kLayer) bias.resize(static_cast<size_t>(dim));
  if (options.kind == NormKind::kLayer && options.has_bias) {
    ASSIGN_OR_RETURN(const WeightView values, weights.get(prefix + ".bias", {dim}));
    bias = to_floats(values);
  }
  for (float& value : weight) value *= options.scale;
  for (float& value : bias) value *= options.scale;
  DeviceMemory& memory = weights.memory();
  return Norm(options.kind, options.epsilon, DeviceFloats(std::move(weight), memory),
              DeviceFloats(std::move(bias), memory));
}

void Norm::forward(Context& context, const TensorView& x, const TensorView& y) const {
  DCHECK(x.dim(1) == static_cast<int64_t>(weight_.size()));
  switch (kind_) {
    case NormKind::kLayer: return layer_norm(context, x, weight_.data(), bias_.data(), epsilon_, y);
    case NormKind::kRms: return rms_norm(context, x, weight_.data(), epsilon_, y);
  }
}

void Norm::forward_heads(Context& context, const TensorView& x, int64_t num_heads) const {
  const int64_t head_dim = x.dim(1) / num_heads;
  for (int64_t head = 0; head < num_heads; ++head) {
    const TensorView columns = x.columns(head * head_dim, (head + 1) * head_dim);
    forward(context, columns, columns);
  }
}

}  // namespace transept

#include "layers/conv1d.h"

namespace transept {

namespace {

StatusOr<PackedMatrix> pack_taps(WeightMap& weights, const Conv1d::Options& options, const MatrixToPack& matrix,
                                 const PackOptions& packing) {
  const int64_t in = options.in_channels, out = options.out_channels, kernel = options.shape.kernel;
  ASSIGN_OR_RETURN(const WeightView weight, weights.get(matrix.name, {out, in, kernel}, WeightUse::kPacked));
  PackedMatrix packed = make_packed(packing, matrix, weights_of(weight.dtype));
  packing.threads.parallel_for(out, [&](int64_t i, int) {
    const size_t count = static_cast<size_t>(kernel * in);
    std::vector<float> by_channel(count), by_tap(count);
    widen_to_float(weight, i * kernel * in, by_channel);
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t tap = 0; tap < kernel; ++tap) {
        by_tap[static_cast<size_t>(tap * in + c)] = by_channel[static_cast<size_t>(c * kernel + tap)];
      }
    }
    packed.set_row(i, by_tap);
  });
  return packed;
}

}  // namespace

StatusOr<Conv1d> Conv1d::load(WeightMap& weights, const Options& options, const PackOptions& packing) {
  const int64_t out = options.out_channels;
  const MatrixToPack matrix{options.prefix + ".weight", out, options.shape.kernel * options.in_channels,
                            options.inputs};
  ASSIGN_OR_RETURN(std::unique_ptr<PackedMatrix> packed, find_packed(packing, weights, matrix));
  if (packed == nullptr) {
    ASSIGN_OR_RETURN(PackedMatrix made, pack_taps(weights, options, matrix, packing));
    packed = std::make_unique<PackedMatrix>(std::move(made));
  }
  std::vector<float> bias;
  if (options.has_bias) {
    ASSIGN_OR_RETURN(const WeightView values, weights.get(options.prefix + ".bias", {out}));
    bias = to_floats(values);
  }
  return Conv1d(std::move(*packed), std::move(bias), options.shape);
}

void Conv1d::forward(Context& context, const TensorView& x, const Epilogue& epilogue, const TensorView& y) const {
  DCHECK(epilogue.bias == nullptr);
  Epilogue whole = epilogue;
  whole.bias = bias_.empty() ? nullptr : bias_.data();
  conv1d(context, x, packed_, shape_, whole, y);
}

}  // namespace transept

#pragma once

#include "layers/linear.h"

namespace transept {

// y = W2 activation(W1 x + b1) + b2 + residual; gated: y = W2 (activation(W0 x) * W1 x) + residual, W0 and W1 in one
// product. Immutable, thread-safe.
class FeedForward final {
 public:
  struct Options {
    std::string up, down;  // prefixes of the two matrices, each with .weight and .bias
    int64_t dim = 0, hidden_dim = 0;
    Activation activation = Activation::kGelu;
    std::string gate = {};       // prefix of W0; "": not gated, unless
    bool up_holds_gate = false;  // `up` is [2 hidden_dim, dim]: W1's rows, then W0's (Moonshine)
    bool has_biases = true;
    LayerInputs down_inputs = LayerInputs::kUsual;
  };
  static StatusOr<FeedForward> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // x, residual, y: [rows, dim] float32; y may be the residual.
  void forward(Context& context, const TensorView& x, const TensorView& residual, const TensorView& y) const;

 private:
  FeedForward(Linear up, Linear down, const Options& options)
      : up_(std::move(up)),
        down_(std::move(down)),
        activation_(options.activation),
        gated_(!options.gate.empty() || options.up_holds_gate),
        gate_first_(!options.up_holds_gate) {}

  void forward_some(Context& context, const TensorView& x, const TensorView& residual, const TensorView& y) const;

  Linear up_, down_;  // gated: up_ is [W0 W1], or [W1 W0]
  Activation activation_;
  bool gated_;
  bool gate_first_;
};

}  // namespace transept

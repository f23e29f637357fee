#pragma once

#include "layers/linear.h"

namespace transept {

// y = W2 activation(W1 x + b1) + b2 + residual. Immutable, thread-safe.
class FeedForward final {
 public:
  struct Options {
    std::string up, down;  // prefixes of the two matrices, each with .weight and .bias
    int64_t dim = 0, hidden_dim = 0;
    Activation activation = Activation::kGelu;
  };
  static StatusOr<FeedForward> load(WeightMap& weights, const Options& options, ThreadPool& threads);

  // x, residual, y: [rows, dim] float32; y may be the residual.
  void forward(Context& context, const TensorView& x, const TensorView& residual, const TensorView& y) const;

 private:
  FeedForward(Linear up, Linear down, Activation activation)
      : up_(std::move(up)), down_(std::move(down)), activation_(activation) {}

  Linear up_, down_;
  Activation activation_;
};

}  // namespace transept

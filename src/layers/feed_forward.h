// y = W2 activation(W1 x + b1) + b2 + residual. Gated: y = W2 (activation(W0 x + b0) * (W1 x + b1)) + b2 + residual,
// with W0 and W1 in one product. Ranks (PackOptions::ranks) have some of the hidden columns each, of W0 and of W1 the
// same. Immutable after loading, so thread-safe; owned by the model. Source: Shazeer, GLU Variants Improve Transformer
// (2020).
#pragma once

#include "layers/linear.h"
#include "layers/norm.h"

namespace transept {

class FeedForward final {
 public:
  struct Options {
    std::string up, down;  // prefixes of W1 and W2: `prefix`.weight and, with has_biases, `prefix`.bias
    int64_t dim = 0, hidden_dim = 0;
    Activation activation = Activation::kGelu;
    std::string gate = {};       // prefix of W0; "": not gated, unless up_holds_gate
    bool up_holds_gate = false;  // `up` is [2 hidden_dim, dim]: W1's rows, then W0's (Moonshine). Not with `gate`
    bool has_biases = true;
    bool is_transposed = false;  // W1 and W2 are [inputs, outputs] (GPT-2's)
    LayerInputs down_inputs = LayerInputs::kUsual;
    std::string inner_norm = {};  // prefix of a norm of the hidden columns, before W2 (EVA-02's sub-LN); "": none
    NormOptions inner_norm_options = {};
  };
  // Errors: those of Linear::load; Unimplemented, hidden columns that so many ranks cannot divide, or an inner norm
  // over those of several ranks.
  static StatusOr<FeedForward> load(WeightMap& weights, const Options& options, const PackOptions& packing);

  // x, residual, y: [rows, dim] float32; y may be the residual; a residual of rank 0 adds nothing. Takes at most 512
  // rows at a time, which bounds the step memory of hidden rows.
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
  Norm inner_norm_;  // empty: none
};

}  // namespace transept

// y = x w^T: products with weight matrices, packed once at load.
//
// Packing: panels of kPanelColumns outputs (columns of y), each panel [k][kPanelColumns] float32, so that a product
// reads memory once, forward, at full width. Outputs past n in the last panel are zero.
//
// Batch invariance: every element of y is the sum over k in the one order that its instruction level fixes for k,
// whatever the number of rows or threads. So a row's bits do not depend on what else is in the batch.
#pragma once

#include <cstdint>

#include "ops/activation_kind.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

constexpr int64_t kPanelColumns = 32;

// What is done to y before it is stored: y = activation(x w^T + bias) + residual.
struct Epilogue {
  const float* bias = nullptr;  // [n], null: none
  Activation activation = Activation::kNone;
  TensorView residual = {};  // [m, n] float32 or empty; may be y itself
};

class PackedMatrix final {
 public:
  // Memory for n outputs of k inputs each, zeroed. Rows are then set one by one, from any thread.
  PackedMatrix(int64_t n, int64_t k);

  // Output `row`'s weights. REQUIRES: weights.size() == k.
  void set_row(int64_t row, std::span<const float> weights);
  // Reads output `row` back (embedding look-up in a tied vocabulary matrix). out: [k].
  void get_row(int64_t row, float* out) const;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const float* panel(int64_t i) const { return reinterpret_cast<const float*>(data_.data()) + i * k_ * kPanelColumns; }
  int64_t num_panels() const { return num_panels_; }
  size_t bytes() const { return data_.size(); }

 private:
  int64_t n_, k_, num_panels_;
  PageBuffer data_;
};

// y = activation(x w^T + bias) + residual. x: [m, k], y: [m, n] float32, rows may be strided, columns dense; y does not
// overlap x. Runs on the context's threads; counts one product. m = 0 does nothing.
void gemm(Context& context, const TensorView& x, const PackedMatrix& w, const Epilogue& epilogue, const TensorView& y);

// The obvious triple loop in double precision over an unpacked w [n, k]: the oracle.
void gemm_reference(const TensorView& x, const TensorView& w, const Epilogue& epilogue, const TensorView& y);

}  // namespace transept

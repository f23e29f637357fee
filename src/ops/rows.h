// What models do to rows between products: choosing some of them, and adding them with a gate. Models touch no memory
// themselves.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// y[i] = x[rows[i]]. x: [any, n], y: [rows.size(), n] float32. REQUIRES: every row in [0, x.dim(0)).
void gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y);

// y += gate * x, element by element. x, y: [rows, n] float32; gate: [n] (one a column), [1] for all columns, or empty
// for 1.
void add_gated(Context& context, const TensorView& x, std::span<const float> gate, const TensorView& y);

}  // namespace transept

// The inputs of a product as a quantised checkpoint rounds them (tensor/input_quantization.h): a step of its own in
// front of the product, so that no kernel knows of it.
#pragma once

#include "ops/row_statistics.h"
#include "tensor/context.h"
#include "tensor/input_quantization.h"
#include "tensor/tensor.h"

namespace transept {

// y = what a product sees of x. x, y: [m, k] float32, rows may be strided, columns dense; y may be x. A row depends on
// itself alone, so its bits do not depend on the batch. A row (a group of it) that finds its own scale and holds
// infinity or NaN becomes NaN; with a scale given, NaN stays and infinities become the largest number. statistics: [m],
// of whole rows where x has a part of their inputs; null: found from x. REQUIRES: inputs.rounds(); statistics only
// without groups. A dry run does nothing.
void round_inputs(Context& context, const TensorView& x, const InputQuantization& inputs,
                  const RowStatistics* statistics, const TensorView& y);

}  // namespace transept

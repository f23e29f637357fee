// The reader of the matrices of a quantised checkpoint. A pure function: thread-safe.
#pragma once

#include <memory>

#include "quantized/quantization_config.h"
#include "weights/matrix_reader.h"

namespace transept {

// Null: what the config says is refused, and so has no reader.
std::unique_ptr<MatrixReader> make_matrix_reader(const QuantizationConfig& config);

// Marks the tensors that quantised checkpoints have and float32 inputs need not: scales of inputs, outputs, keys and
// values. Returns how many of them are scales of keys and values.
int ignore_scales_of_activations(WeightMap& weights);

}  // namespace transept

// Writes the matrices of a model that was just loaded, packed as they are, and every tensor that the model reads
// otherwise, as one safetensors file that loads without work (decision 14). Used once, on one thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "layers/packing.h"
#include "tensor/dtype.h"
#include "weights/weight_map.h"

namespace transept {

// weights: what the model was loaded from; layers: the report of its PackOptions, whose matrices are still there;
// storage: what these were asked to be. Errors as write_safetensors.
Status write_pack_file(const std::string& path, const WeightMap& weights, std::span<const PackedLayer> layers,
                       std::optional<DType> storage, FunctionRef<bool()> goes_on);

}  // namespace transept

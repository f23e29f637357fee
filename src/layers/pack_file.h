// Writes a model that was just loaded as one safetensors file that loads without work (decision 14): its matrices,
// packed as they are, and all other tensors that the model reads. A function; used once, on one thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "layers/packing.h"
#include "layers/split.h"
#include "tensor/weight_format.h"
#include "weights/weight_map.h"

namespace transept {

// What the file of one of several ranks says besides.
struct PackedPart {
  Ranks ranks = {};         // of the PackOptions: whose parts the matrices are
  std::string source = {};  // PackTag::source
};

// weights: the checkpoint of the model; layers: the report of its PackOptions, whose matrices still exist; storage: the
// requested one; goes_on: polled, false cancels. Errors: as write_safetensors.
Status write_pack_file(const std::string& path, WeightMap& weights, std::span<const PackedLayer> layers,
                       std::optional<WeightFormat> storage, FunctionRef<bool()> goes_on, const PackedPart& part = {});

}  // namespace transept

// Tells whether two checkpoints are one, by a sample of each tensor: ranks compare what they have opened, and files
// that were packed for ranks say what they are of. A pure function: thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/content_digest.h"
#include "base/function_ref.h"
#include "core/model_config.h"
#include "weights/weight_map.h"

namespace transept {

struct TensorsDigest {
  int64_t count = 0;     // of tensors
  ContentDigest digest;  // of their names, types and shapes, and the first 4 KiB of each
};

// Of the tensors that are `wanted`, by the file's spelling. Reads no more of the files than that.
TensorsDigest digest_of_tensors(const WeightMap& weights, FunctionRef<bool(std::string_view name)> wanted);

// Of config.json and of every tensor.
ContentDigest digest_of_checkpoint(const ModelConfig& config, const WeightMap& weights);

}  // namespace transept

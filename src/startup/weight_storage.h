// Derives from the flags how a model's matrices, and its keys and values, are stored. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/isa.h"
#include "base/status.h"
#include "layers/packing.h"
#include "startup/engine_config.h"
#include "tensor/dtype.h"
#include "tensor/weight_format.h"
#include "weights/weight_map.h"

namespace transept {

// What a folder says of its weights.
struct StoredWeights {
  WeightFormat format = {};  // of most of their bytes
  bool is_packed = false;
  std::optional<WeightFormat> packed_as = {};  // PackTag::storage
  std::string quantization = {};               // how it is quantised, for reports; "": it is not
};
StoredWeights stored_weights(const WeightMap& weights, const std::string& quantization);

// What everything is stored as. Chosen once, before anything is loaded.
struct StorageTypes {
  std::optional<WeightFormat> weights;  // unset: as the checkpoint stores each
  bool as_packed = false;               // the folder's packed matrices are used as they are
  DType kv = DType::kFloat32;           // of self and cross KV
  std::string report;                   // what --quantization auto chose, and why; "": not requested
};

// --quantization auto takes the fastest of the types with which every model of ./dev quality passes every gate
// (decision 12). For weights those are 16-bit types: no model that is wide enough for int8 has passed. Float32 weights
// become float16, other weights stay, and a quantised checkpoint means exactly what it says. Where --kv-cache-dtype is
// auto, keys and values are int8, in models narrower than kLeastInt8Width float16. A level that widens float16 in
// software (generic) changes nothing. A packed folder's matrices stay as they are unless a flag asks for another type.
// model_width: ModelConfig::width. Errors:
// --kv-cache-dtype is unknown. REQUIRES: check_features() has accepted the config.
StatusOr<StorageTypes> storage_types(const EngineConfig& config, Isa isa, const StoredWeights& stored,
                                     int64_t model_width);

// What --quantization int8 and int4 would make of the bytes that a step reads, on a level whose kernels multiply such
// codes fast, and where their price stands: a line of the start-up report. "": there is little to gain, because the
// matrices are codes already, or too narrow.
std::string faster_storage_note(const std::vector<PackedLayer>& layers, Isa isa);

// Replaces the flags by the storage type that the matrices ended up with, for reports.
void set_storage_flags(const std::optional<WeightFormat>& storage, EngineConfig& config);

}  // namespace transept

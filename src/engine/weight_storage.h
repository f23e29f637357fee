// Derives from the flags how a model's matrices, and its keys and values, are stored. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/isa.h"
#include "base/status.h"
#include "engine/engine_config.h"
#include "layers/packing.h"
#include "tensor/dtype.h"
#include "tensor/weight_format.h"

namespace transept {

// Narrower layers are never int8. Keys and values of narrower models are int8 only on request: rounding errors do not
// average out over so few entries, and there are few bytes to save. In int8, bart-g2p (128 wide) kept 97 % of its
// greedy answers, the bundled model (160 wide) 99.0 %: decision 12.
inline constexpr int64_t kLeastInt8Width = 192;

// What a folder says of its weights: only for --quantization auto.
struct StoredWeights {
  WeightFormat format = {};  // of most of their bytes
  bool is_packed = false;
};

struct StorageTypes {
  std::optional<WeightFormat> weights;  // unset: as the checkpoint stores each
  DType kv = DType::kFloat32;
  std::optional<DType> narrow_kv;  // instead of kv, in a model narrower than kLeastInt8Width
  std::string report;              // what --quantization auto chose, and why; "": not requested
};

// --quantization auto takes the fastest of the types with which every model of ./dev quality passes every gate
// (decision 12). For weights those are 16-bit types: no model that is wide enough for int8 has passed. Float32 weights
// become float16, other weights stay. Where --kv-cache-dtype is auto, keys and values are int8, in narrow models
// float16. A level that widens float16 in software (generic) changes nothing. Errors: --kv-cache-dtype is unknown.
// REQUIRES: check_features() has accepted the config.
StatusOr<StorageTypes> storage_types(const EngineConfig& config, Isa isa, const StoredWeights& stored);

// Whether a flag asks for a storage type. Otherwise a packed folder's matrices are used as they are.
bool storage_is_asked(const EngineConfig& config);

// "int8 58.1 MiB in 97 matrices, float32 0.1 MiB in 2 matrices; 58.2 MiB of them mapped".
std::string storage_text(const std::vector<PackedLayer>& layers);

// Replaces the flags by the storage type that the matrices ended up with, for reports.
void set_storage_flags(const std::optional<WeightFormat>& storage, EngineConfig& config);

}  // namespace transept

// What the flags say of how a model's matrices, and keys and values, are kept. Pure functions.
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

namespace transept {

// Narrower layers are never int8, nor are keys and values of narrower models by themselves: rounding errors do not
// average out over so few entries, and there are few bytes to save. In int8 bart-g2p (128 wide) kept 97 % of its greedy
// answers, the bundled model (160 wide) 99.0 %: decision 12.
inline constexpr int64_t kLeastInt8Width = 192;

// What a folder says of its weights: only for --quantization auto.
struct StoredWeights {
  DType dtype = DType::kFloat32;  // of most of their bytes
  bool is_packed = false;
};

struct StorageTypes {
  std::optional<DType> weights;  // unset: as the checkpoint stores each
  DType kv = DType::kFloat32;
  std::optional<DType> narrow_kv;  // instead of kv, in a model narrower than kLeastInt8Width
  std::string report;              // what --quantization auto chose, and why; "": not asked for
};

// --quantization auto is the fastest of the types with which every model of ./dev quality passes every gate (decision
// 12). For weights those are 16-bit ones: no model that is wide enough for int8 has passed. Weights in float32 become
// float16, other weights stay; keys and values are int8, float16 in narrow models, where --kv-cache-dtype leaves them
// to this. A level that widens float16 in software (generic) keeps everything. Errors: --kv-cache-dtype is unknown.
// REQUIRES: check_features() has seen the config.
StatusOr<StorageTypes> storage_types(const EngineConfig& config, Isa isa, const StoredWeights& stored);

// A flag asks for it. Otherwise a packed folder's matrices are taken as they are.
bool storage_is_asked(const EngineConfig& config);

// "int8 58.1 MiB in 97 matrices, float32 0.1 MiB in 2 matrices; 58.2 MiB of them mapped".
std::string storage_text(const std::vector<PackedLayer>& layers);

// Puts what matrices are kept in, in the end, where the flags stood: what reports show.
void set_storage_flags(std::optional<DType> storage, EngineConfig& config);

}  // namespace transept

// What the flags say of how a model's matrices are kept. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.h"
#include "layers/packing.h"
#include "tensor/dtype.h"

namespace transept {

// Narrower layers are never int8: rounding errors do not average out over so few entries, and there are few bytes to
// save. In int8 bart-g2p (128 wide) kept 97 % of its greedy answers, the bundled model (160
// wide) 99.0 %: decision 12.
inline constexpr int64_t kLeastInt8Width = 192;

// Unset: as the checkpoint stores each. REQUIRES: check_features() has seen the config.
std::optional<DType> weight_storage(const EngineConfig& config);

// A flag asks for it. Otherwise a packed folder's matrices are taken as they are.
bool storage_is_asked(const EngineConfig& config);

// "int8 58.1 MiB in 97 matrices, float32 0.1 MiB in 2 matrices; 58.2 MiB of them mapped".
std::string storage_text(const std::vector<PackedLayer>& layers);

// Puts what matrices are kept in, in the end, where the flags stood: what reports show.
void set_storage_flags(std::optional<DType> storage, EngineConfig& config);

}  // namespace transept

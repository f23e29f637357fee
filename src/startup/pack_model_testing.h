// For tests: packing without an interruption.
#pragma once

#include <string>

#include "startup/pack_model.h"

namespace transept::testing {

inline StatusOr<PackedModel> pack(const EngineConfig& config, const std::string& out) {
  return pack_model(config, out, [] { return true; });
}

}  // namespace transept::testing

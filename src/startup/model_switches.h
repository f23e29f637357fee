// A folder's configuration, with the switches of a model that flags set beside it. What they mean is the family's: it
// reads them from config.json like any other key, so prompts, model, fingerprint and all ranks have the same. Pure but
// for reading the folder.
#pragma once

#include "base/status.h"
#include "core/model_config.h"
#include "startup/engine_config.h"

namespace transept {

// Errors: those of load_family_config; a switch that the family does not have, by the flag's name.
StatusOr<ModelConfig> load_switched_config(const EngineConfig& config, const ModelFolder& folder);

}  // namespace transept

// Flags that configure the engine, and the configuration that they give. Named as vLLM's where it has them.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "startup/load_engine.h"

namespace transept {

std::vector<FlagSpec> engine_flags();

// REQUIRES: the first positional argument is the model. Errors: a flag out of range, by name; no such model.
StatusOr<EngineConfig> engine_config(const Flags& flags);

// Returns `name` if it is a folder; else the folder of the bundled model of that name, from $TRANSEPT_MODELS, beside
// the binary (../share/transept/models), or the source tree that the binary was built in. Errors: neither (names what
// was searched for).
StatusOr<std::string> resolve_model(const std::string& name);

}  // namespace transept

// Flags that configure the engine, and what comes of them. Names are vLLM's where it has them.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "engine/config.h"

namespace transept {

std::vector<FlagSpec> engine_flags();

// REQUIRES: the first positional argument is the model. Errors: a flag out of range, by name; no such model.
StatusOr<EngineConfig> engine_config(const Flags& flags);

// A folder; or the name of a bundled model, looked for in $TRANSEPT_MODELS, beside the binary
// (../share/transept/models), and in the source tree that the binary was built in. Errors: neither (names what was
// looked for).
StatusOr<std::string> resolve_model(const std::string& name);

}  // namespace transept

// The options of transept_model_load as the engine's configuration. A pure function: thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "startup/engine_config.h"

namespace transept {

// `options`: an object with the options that transept.h lists, which are the engine's flags with underscores and have
// their defaults. Errors (kInvalidArgument) name the option: unknown, of another kind, out of range. load_engine checks
// words.
StatusOr<EngineConfig> engine_config_of(const std::string& folder, const Json& options);

}  // namespace transept

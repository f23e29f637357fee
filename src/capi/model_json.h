// What a model is and what its engine has done, as JSON. Pure functions: thread-safe.
#pragma once

#include "async/engine_snapshot.h"
#include "base/json.h"
#include "capi/shared_model.h"

namespace transept {

Json model_info_json(const SharedModel& model);

// The names are those of --stats-json, where it has them.
Json model_stats_json(const EngineSnapshot& snapshot);

}  // namespace transept

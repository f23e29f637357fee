// The counters of a run as JSON. A function without state.
#pragma once

#include "base/json.h"
#include "startup/load_engine.h"

namespace transept {

// Returns what a run did, for --stats-json and bench: version, settings, counters, memory, and the step trace.
Json engine_stats_json(const LoadedModel& model, double elapsed_seconds);

}  // namespace transept

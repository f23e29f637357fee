// The counters of a run as JSON, and how reports write lists and numbers. Pure: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "startup/load_engine.h"

namespace transept {

// Returns what a run did, for --stats-json and bench: version, settings, counters, memory, and the step trace.
Json engine_stats_json(const LoadedModel& model, double elapsed_seconds);

// The strings as an array.
Json strings_json(const std::vector<std::string>& strings);

// With so many digits behind the point: 2.5, 2 -> "2.50".
std::string fixed(double value, int digits);

}  // namespace transept

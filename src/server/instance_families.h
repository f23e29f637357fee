// Formats what an instance of a fleet counts as Prometheus' metric families: transept_ec_*, under the names that the
// design of separated encoders gave them (docs/scaling.md). Thread-safe functions.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "engine/engine_state.h"
#include "startup/instance_stats.h"

namespace transept {

// Appends the families, with the label model_name.
void append_instance_families(const InstanceStats& instance, const EngineState& engine, const std::string& model_name,
                              std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

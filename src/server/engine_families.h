// The engine's state as Prometheus' families: gauges of now, and counters that the engine itself keeps. A pure
// function: thread-safe.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "engine/async_engine.h"

namespace transept {

// Appends to `families`, each with the label model_name.
void append_engine_families(const EngineSnapshot& engine, int32_t num_waiting, const std::string& model_name,
                            std::vector<prometheus::MetricFamily>& families);
// This process, without labels: the names that Prometheus' own clients use.
void append_process_families(double start_time, std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

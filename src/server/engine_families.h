// Formats the state of the engine and of the process as Prometheus' metric families: current gauges, and counters that
// the engine keeps. Thread-safe functions.
#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>
#include <vector>

#include "async/async_engine.h"

namespace transept {

// Appends the engine's families, with the label model_name. `num_waiting`: Admission::num_waiting.
void append_engine_families(const EngineSnapshot& engine, int32_t num_waiting, const std::string& model_name,
                            std::vector<prometheus::MetricFamily>& families);
// Appends the families that compare replicas, with the labels model_name and `replica` (from 0). Their names differ
// from those above, so that sums over the series above stay correct.
void append_replica_families(std::span<const EngineSnapshot> replicas, const std::string& model_name,
                             std::vector<prometheus::MetricFamily>& families);
// Appends the families of this process, without labels, named as by Prometheus' own clients. Reads /proc.
// `start_time`: seconds since the epoch.
void append_process_families(double start_time, std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

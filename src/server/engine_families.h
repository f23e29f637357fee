// The engine's state as Prometheus' families: gauges of now, and counters that the engine itself keeps. A pure
// function: thread-safe.
#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>
#include <vector>

#include "engine/async_engine.h"

namespace transept {

// Appends to `families`, each with the label model_name.
void append_engine_families(const EngineSnapshot& engine, int32_t num_waiting, const std::string& model_name,
                            std::vector<prometheus::MetricFamily>& families);
// What replicas are to be compared by, each with the label `replica` (from 0) too, under names of their own: sums over
// the series of the families above stay what they are.
void append_replica_families(std::span<const EngineSnapshot> replicas, const std::string& model_name,
                             std::vector<prometheus::MetricFamily>& families);
// This process, without labels: the names that Prometheus' own clients use.
void append_process_families(double start_time, std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

// Formats the state of the engine and of the process as Prometheus' metric families: current gauges, and counters that
// the engine keeps. Thread-safe functions.
#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>
#include <vector>

#include "async/async_engine.h"
#include "server/admission.h"

namespace transept {

// Appends the families of the engine and of what waits for it, with the label model_name.
void append_engine_families(const EngineSnapshot& engine, const AdmissionLoad& load, const std::string& model_name,
                            std::vector<prometheus::MetricFamily>& families);
// Appends the families that compare replicas, with the labels model_name and `replica` (from 0). Their names differ
// from those above, so that sums over the series above stay correct.
void append_replica_families(std::span<const EngineSnapshot> replicas, const std::string& model_name,
                             std::vector<prometheus::MetricFamily>& families);
// Appends the families of this process, without labels, named as by Prometheus' own clients. Reads /proc.
// `start_time`: seconds since the epoch.
void append_process_families(double start_time, std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

// Formats what the sessions of /v1/realtime count as Prometheus' metric families (docs/live.md). Thread-safe functions.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "server/realtime_counts.h"

namespace transept {

// Appends the families, with the label model_name.
void append_realtime_families(const RealtimeStats& stats, const std::string& model_name,
                              std::vector<prometheus::MetricFamily>& families);

}  // namespace transept

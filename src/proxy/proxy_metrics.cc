#include "proxy/proxy_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

namespace transept {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Values = std::vector<std::pair<const char*, int64_t>>;

// One series for each value of `label`; without a label, one.
MetricFamily family(MetricType type, const char* name, const char* help, const char* label, const Values& values) {
  MetricFamily family{name, help, type, {}};
  for (const auto& [value, number] : values) {
    ClientMetric& metric = family.metric.emplace_back();
    if (*label != '\0') metric.label.push_back({label, value});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = static_cast<double>(number);
  }
  return family;
}

}  // namespace

std::string proxy_metrics_text(const ProxyCounts& counts, const DecoderPool::States& instances) {
  const std::vector<MetricFamily> families = {
      family(MetricType::Counter, "transept_proxy_requests_total", "Requests that ended, by who answered them.",
             "outcome",
             {{"answered", counts.num_answered}, {"failed", counts.num_failed}, {"given_up", counts.num_given_up}}),
      family(MetricType::Counter, "transept_proxy_retries_total", "Tries of requests at another instance.", "",
             {{"", counts.num_again}}),
      family(MetricType::Counter, "transept_proxy_holds_total", "Tries of requests that were to be held.", "outcome",
             {{"held", counts.num_held}, {"let_go", counts.num_let_go}}),
      family(MetricType::Gauge, "transept_proxy_requests_in_work", "Requests that are forwarded, or about to be.", "",
             {{"", counts.num_in_work}}),
      family(MetricType::Gauge, "transept_proxy_body_bytes", "Bytes of requests' bodies that are held.", "",
             {{"", counts.num_body_bytes}}),
      family(MetricType::Counter, "transept_proxy_websockets_total", "WebSockets that an instance has opened.", "",
             {{"", counts.num_opened_websockets}}),
      family(MetricType::Gauge, "transept_proxy_websockets", "WebSockets that are open.", "",
             {{"", counts.num_websockets}}),
      family(
          MetricType::Gauge, "transept_proxy_instances",
          "Decode instances that the broker has a record of, by whether they get requests.", "state",
          {{"ready", instances.num_ready}, {"left_out", instances.num_left_out}, {"draining", instances.num_draining}}),
  };
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace transept

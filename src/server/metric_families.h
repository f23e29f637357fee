// Metric families of values that others keep: gauges, counters and histograms with the same labels. Used by one thread
// at a time.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "encoder_cache/ec_stats.h"

namespace transept {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

inline prometheus::ClientMetric counter_of(double value, MetricLabels labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  return metric;
}

inline prometheus::ClientMetric gauge_of(double value, MetricLabels labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  return metric;
}

inline prometheus::ClientMetric histogram_of(const EcHistogram& histogram, MetricLabels labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  uint64_t count = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    count += static_cast<uint64_t>(histogram.counts[i]);
    const bool is_last = i == EcHistogram::kBounds.size();
    const double bound = is_last ? std::numeric_limits<double>::infinity() : EcHistogram::kBounds[i];
    metric.histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = histogram.sum;
  return metric;
}

// Appends families, each of which has `labels`.
class MetricFamilies final {
 public:
  MetricFamilies(MetricLabels labels, std::vector<prometheus::MetricFamily>& families)
      : labels_(std::move(labels)), families_(families) {}

  void gauge(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), prometheus::MetricType::Gauge, {gauge_of(value, labels_)});
  }
  void gauge(std::string name, std::string help, int64_t value) {
    gauge(std::move(name), std::move(help), static_cast<double>(value));
  }
  void count(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), prometheus::MetricType::Counter, {counter_of(value, labels_)});
  }
  void count(std::string name, std::string help, int64_t value) {
    count(std::move(name), std::move(help), static_cast<double>(value));
  }
  // One series for each value of `label`.
  void counts(std::string name, std::string help, const std::string& label,
              const std::vector<std::pair<std::string, int64_t>>& values) {
    std::vector<prometheus::ClientMetric> metrics;
    metrics.reserve(values.size());
    for (const auto& [value, count] : values) {
      metrics.push_back(counter_of(static_cast<double>(count), with({{label, value}})));
    }
    add(std::move(name), std::move(help), prometheus::MetricType::Counter, std::move(metrics));
  }
  void add(std::string name, std::string help, prometheus::MetricType type,
           std::vector<prometheus::ClientMetric> metrics) {
    families_.push_back({std::move(name), std::move(help), type, std::move(metrics)});
  }
  // The labels of all families, and more.
  MetricLabels with(std::initializer_list<prometheus::ClientMetric::Label> more) const {
    MetricLabels labels = labels_;
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
  }

 private:
  const MetricLabels labels_;
  std::vector<prometheus::MetricFamily>& families_;
};

}  // namespace transept

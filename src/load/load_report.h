// The results of a load, from its exchanges: as numbers, as JSON and as a table. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "load/load_driver.h"
#include "load/statistics.h"

namespace transept {

// A request is good if it was answered whole and exceeded none of these.
struct GoodputLimits {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;

  bool is_any() const { return ttft_ms.has_value() || tpot_ms.has_value() || e2el_ms.has_value(); }
  // "ttft:500 tpot:50,e2el:2000". Errors: an unknown name, a repeated name, a value that is no number above 0.
  static StatusOr<GoodputLimits> parse(std::string_view text);
};

// In milliseconds, of the exchanges that were answered whole. docs/bench_serve.md defines each metric.
struct LoadMetrics {
  double duration_s = 0;
  int64_t num_requests = 0, num_ok = 0;
  int64_t num_rejected = 0;                        // 429
  std::map<std::string, int64_t> errors;           // kind -> how many, 429 among them
  std::map<std::string, std::string> error_texts;  // kind -> the server's message of the first
  int64_t input_tokens = 0, output_tokens = 0;
  int64_t num_without_usage = 0;  // whole answers without counts: their text_times count as output tokens
  double audio_seconds = 0;
  int max_in_flight = 0;
  int64_t num_good = 0;  // by GoodputLimits
  Statistics ttft, itl, tpot, e2el;
  Statistics send_delay;  // how late requests were sent; of all requests
};

LoadMetrics measure_load(const LoadResult& result, const GoodputLimits& limits);

// In the unit of the values; null for none.
Json statistics_json(const Statistics& statistics);
// Members for the report; latencies without a value (TTFT of answers that are not streamed) are null.
Json load_metrics_json(const LoadMetrics& metrics, const GoodputLimits& limits);
std::string load_metrics_table(const LoadMetrics& metrics, const GoodputLimits& limits);

}  // namespace transept

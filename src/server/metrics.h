// What operators see at /metrics: vLLM's names with the prefix "transept:" (API.md). Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/request_output.h"
#include "engine/async_engine.h"

namespace transept {

class ServerMetrics final {
 public:
  explicit ServerMetrics(const std::string& model_name);
  ~ServerMetrics();

  // An HTTP answer's end; route is the route's pattern ("/v1/completions"), or "other".
  void count_http(std::string_view route, std::string_view method, int status, double seconds);
  // A generated piece: `seconds` since the one before it, or since the request came (first).
  void observe_first_token(double seconds);
  void observe_inter_token(double seconds, int32_t num_tokens);
  // A finished engine request: queue time, end to end, tokens per request, finish reasons.
  void count_request(const RequestOutput& output);
  void count_unknown_fields(int32_t count);
  void count_audio_seconds(double seconds);
  void count_refused(std::string_view why);  // "queue", "budget", "draining", "loading"

  // Prometheus' text format; gauges and the engine's counters are those of `engine`. `num_waiting` is the queue's
  // length with what the engine does not count yet. `engine` is all of its `replicas`: where there are several, each
  // has series of its own besides.
  std::string text(const EngineSnapshot& engine, int32_t num_waiting,
                   const std::vector<EngineSnapshot>& replicas = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept

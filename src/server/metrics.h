// The metrics at /metrics: vLLM's names with the prefix "transept:" (docs/server.md). Owned by Server. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/async_engine.h"
#include "core/request_output.h"
#include "server/admission.h"
#include "server/realtime_counts.h"
#include "startup/instance_stats.h"

namespace transept {

// The values of one answered request for the histograms: one prompt of a text route, or one transcription of any number
// of windows. Times are in seconds since the request arrived; negative: it has not happened.
struct FinishedRequest {
  double queue_s = -1;
  double first_token_s = -1;
  double total_s = -1;
  int64_t num_prompt_tokens = 0;     // encoder and decoder
  int64_t num_generated_tokens = 0;  // of all answers
  // The intervals between tokens of the longest answer: their number, and their sum in seconds.
  int64_t num_intervals = 0;
  double interval_seconds = 0;
  std::vector<FinishReason> finish_reasons;  // one for each answer
};

class ServerMetrics final {
 public:
  explicit ServerMetrics(const std::string& model_name);
  ~ServerMetrics();

  // Counts an HTTP answer that has ended. `route` is a route's pattern ("/v1/completions"), or "other".
  void count_http(std::string_view route, std::string_view method, int status, double seconds);
  // Counts a request that was answered; call once for each, of any route.
  void count_request(const FinishedRequest& request);
  // Counts answers (prompts of one call) whose client has gone before their end: finished_reason "abort".
  void count_aborted(int32_t count);
  void set_num_arriving(int32_t count);  // requests whose bodies are arriving
  void count_unknown_fields(int32_t count);
  void count_audio_seconds(double seconds);
  void count_refused(std::string_view why);  // "queue", "budget", "arriving", "draining", "loading", "live"

  // Formats all metrics in Prometheus' text format. `engine` is the sum of `replicas`; if there are several replicas,
  // each has its own series too. `load`: Admission::load. `instance`: of a fleet; null: none. `live`: of
  // /v1/realtime; null: none.
  std::string text(const EngineSnapshot& engine, const AdmissionLoad& load,
                   const std::vector<EngineSnapshot>& replicas = {}, const InstanceStats* instance = nullptr,
                   const RealtimeStats* live = nullptr) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept

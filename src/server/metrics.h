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

// What the histograms of requests are told of one that was answered: a prompt of a text route, or a transcription,
// however many windows it had. Times are seconds since the request came; negative: it has not happened.
struct FinishedRequest {
  double queue_s = -1;
  double first_token_s = -1;
  double total_s = -1;
  int64_t num_prompt_tokens = 0;     // encoder and decoder
  int64_t num_generated_tokens = 0;  // of all its answers
  // From a token to the next, of the longest answer: how many such steps, and the seconds of all of them.
  int64_t num_intervals = 0;
  double interval_seconds = 0;
  std::vector<FinishReason> finish_reasons;  // one an answer
};

class ServerMetrics final {
 public:
  explicit ServerMetrics(const std::string& model_name);
  ~ServerMetrics();

  // An HTTP answer's end; route is the route's pattern ("/v1/completions"), or "other".
  void count_http(std::string_view route, std::string_view method, int status, double seconds);
  // Every request that was answered, of whichever route, once.
  void count_request(const FinishedRequest& request);
  void set_num_arriving(int32_t count);  // requests whose bodies are on their way
  void count_unknown_fields(int32_t count);
  void count_audio_seconds(double seconds);
  void count_refused(std::string_view why);  // "queue", "budget", "arriving", "draining", "loading"

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

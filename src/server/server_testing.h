// For tests: a model of the source tree with an engine and all that a route is given around it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/source_dir_testing.h"
#include "base/strings.h"
#include "server/server_context.h"
#include "startup/load_engine.h"

namespace transept::testing {

// The bundled model: words to phonemes, of text alone.
inline std::string bundled_model() { return str_cat(source_dir(), "/models/g2p"); }
// A tiny model that transcribes, with words.
inline std::string speech_model() { return str_cat(source_dir(), "/tests/models/whisper-transcribes"); }

inline ServerOptions default_server_options() {
  ServerOptions options;
  options.served_model_names = {"g2p"};
  options.version = "0.0.0";
  options.commit = "0123456789ab";
  return options;
}

// A loaded model whose engine runs, and a context of it that is ready. What options() gives may be changed until the
// first request.
class ServerHouse final {
 public:
  explicit ServerHouse(ServerOptions options = default_server_options(), std::string model = bundled_model(),
                       EngineConfig config = {})
      : options_(std::move(options)), log_({.is_on = false}), metrics_(options_.served_model_names.front()) {
    config.model = std::move(model);
    config.threads = 1;
    config.caches_inputs = config.caches_prefixes = false;  // usage does not depend on what was asked before
    if (!config.kv_cache_memory.has_value()) config.kv_cache_memory = uint64_t{32} << 20;
    auto loaded = load_engine(config, clock_);
    CHECK(loaded.ok(), error_message(loaded.status()));
    model_ = std::make_unique<LoadedModel>(std::move(loaded).value());
    const AsyncEngine::Options queue{options_.queue.max_requests};
    engine_ = std::make_unique<AsyncEngine>(model_->take_engines(), queue, clock_);
    admission_ = std::make_unique<Admission>(
        options_.queue, [this] { return engine_->num_queued(); }, clock_);
    StatusOr<SpeechModel> speech = SpeechModel::of(*model_, *engine_);
    const Status why_no_speech = speech.status();
    if (speech.ok()) speech_ = std::move(speech).value();
    context_.emplace(ServerContext{options_, *model_, *engine_, speech_.has_value() ? &*speech_ : nullptr,
                                   why_no_speech, *admission_, incoming_, metrics_, log_, workers_, workers_, answers_,
                                   transcribers_, clock_, kStartTime, state_});
  }
  ~ServerHouse() {
    workers_.stop();
    transcribers_.stop();
    answers_.stop();
  }
  ServerHouse(const ServerHouse&) = delete;
  ServerHouse& operator=(const ServerHouse&) = delete;

  static constexpr int64_t kStartTime = 1'700'000'000;  // "created" of /v1/models

  const ServerContext& context() const { return *context_; }
  ServerOptions& options() { return options_; }
  AsyncEngine& engine() { return *engine_; }
  Admission& admission() { return *admission_; }
  ServerMetrics& metrics() { return metrics_; }
  WorkPool& workers() { return workers_; }
  LoadedModel& model() { return *model_; }
  void set_state(ServerState state) { state_ = state; }
  // Borrows it.
  void set_realtime(RealtimeHub* hub) { context_->realtime = hub; }

 private:
  SteadyClock clock_;
  ServerOptions options_;
  AccessLog log_;
  ServerMetrics metrics_;
  std::atomic<ServerState> state_{ServerState::kReady};
  WorkPool workers_{2}, answers_{2}, transcribers_{2};  // outlive the engine, whose last words they pass on
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<AsyncEngine> engine_;
  std::unique_ptr<Admission> admission_;
  IncomingRequests incoming_{{}, metrics_, clock_};
  std::optional<SpeechModel> speech_;
  std::optional<ServerContext> context_;
};

}  // namespace transept::testing

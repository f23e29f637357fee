// What every route works with: the model, the engine, admission, metrics. Owned by Server (server.h), which
// outlives every request; all of it may be used by several threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "engine/async_engine.h"
#include "engine/config.h"
#include "net/http_server.h"
#include "request/request.h"
#include "server/access_log.h"
#include "server/admission.h"
#include "server/incoming_requests.h"
#include "server/metrics.h"
#include "server/work_pool.h"
#include "speech/transcriber.h"

namespace transept {

struct ServerOptions {
  HttpServer::Options http;
  std::vector<std::string> served_model_names;  // at least one; the first is what answers say
  std::vector<std::string> api_keys;            // empty: no key is asked for
  std::vector<std::string> allowed_hosts;       // besides this machine's own names; "*": any
  bool listens_on_loopback = true;              // only this machine can reach it: Hosts are looked at
  std::vector<std::string> cors_origins;        // "*": every site; empty: no other site's pages
  Admission::Options queue;
  int32_t max_arriving = 128;  // requests whose bodies are on their way slowly; further ones make the slowest go
  int32_t max_arriving_per_peer = 64;  // of one address
  std::optional<Duration> request_timeout;
  std::string allowed_local_media_path;  // "": no local paths
  double max_audio_seconds = 4 * 60 * 60;
  size_t max_upload_bytes = size_t{25} << 20;
  size_t max_field_bytes = size_t{1} << 20;  // of a form
  Json::ParseLimits json;
  RequestLimits limits;
  int32_t max_transcriptions = 32;  // that run at once, each on a thread of its own
  bool skip_silence = true;         // windows of audio without speech are not decoded
  bool log_prompts = false;
  std::string version, commit;  // of the binary
};

// What serves: moves forwards only.
enum class ServerState : uint8_t { kLoading, kReady, kDraining };

struct ServerContext {
  const ServerOptions& options;
  const LoadedModel& model;
  AsyncEngine& engine;
  const SpeechModel* speech = nullptr;  // null: the model takes no audio, or cannot transcribe (why_no_speech)
  Status why_no_speech;
  Admission& admission;
  IncomingRequests& incoming;
  ServerMetrics& metrics;
  const AccessLog& log;
  WorkPool& workers;       // bodies and prompts
  WorkPool& tokenizers;    // those of /tokenize and /detokenize: megabytes of text keep no prompt waiting
  WorkPool& answers;       // what the engine brings, on its way out
  WorkPool& transcribers;  // a transcription each, from its first byte to its last
  const Clock& clock;
  int64_t start_time_unix = 0;  // of the model's loading: "created" of /v1/models
  std::atomic<ServerState>& state;
};

// One request of a route, on its way. Shared by whatever works on it.
struct ApiCall {
  HttpRequest http;
  std::shared_ptr<Responder> responder;
  Admission::Places places;       // of one request; given up once the engine counts it
  Admission::Places more_places;  // of the further prompts of a batch
  Admission::Charge body_charge;
  Admission::Charge charge;
  TimePoint arrival{};

  std::optional<TimePoint> deadline(const ServerContext& context) const {
    if (!context.options.request_timeout.has_value()) return std::nullopt;
    return arrival + *context.options.request_timeout;
  }
};
using ApiCallPtr = std::shared_ptr<ApiCall>;

}  // namespace transept

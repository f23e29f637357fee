// The state that all routes share: the model, the engine, admission, metrics. Server (server.h) owns it, and outlives
// every request. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/async_engine.h"
#include "base/clock.h"
#include "base/json.h"
#include "net/access_log.h"
#include "net/http_server.h"
#include "request/request.h"
#include "server/admission.h"
#include "server/cache_scope.h"
#include "server/client_secrets.h"
#include "server/incoming_requests.h"
#include "server/metrics.h"
#include "server/realtime_hub.h"
#include "server/work_pool.h"
#include "speech/transcriber.h"
#include "startup/instance.h"
#include "startup/load_engine.h"

namespace transept {

struct ServerOptions {
  HttpServer::Options http;
  std::vector<std::string> served_model_names;  // at least one; the first is the default of answers
  std::vector<std::string> api_keys;            // empty: requests need no key
  std::vector<std::string> admin_keys;          // of RouteKind::kAdmin; good for other routes, too
  CacheScope cache_scope = CacheScope::kGlobal;
  std::vector<std::string> allowed_hosts;  // besides the names of loopback; "*": any
  bool listens_on_loopback = true;         // set by Server::start; Hosts are checked if true, or with allowed_hosts
  std::vector<std::string> cors_origins;   // "*": pages of any site; empty: no other site's pages
  Admission::Options queue;
  int32_t max_arriving = 128;               // requests whose bodies arrive slowly; each further one evicts the slowest
  int32_t max_arriving_per_peer = 64;       // of one address
  std::optional<Duration> request_timeout;  // from the head to the end of the answer
  std::string allowed_local_media_path;     // "": no local paths
  double max_audio_seconds = 4 * 60 * 60;
  size_t max_upload_bytes = size_t{25} << 20;  // of the file of a form
  size_t max_field_bytes = size_t{1} << 20;    // of another field of a form
  Json::ParseLimits json;
  RequestLimits limits;
  int32_t max_transcriptions = 32;  // concurrent ones, each on its own thread
  bool skip_silence = true;         // windows of audio without speech are not decoded
  RealtimeHub::Options live;        // of /v1/realtime
  bool log_prompts = false;
  std::string version, commit;  // of the binary
  // Of an instance of a fleet (startup/instance.h): routes that its part of the model lacks do not exist.
  std::optional<InstanceRole> role = std::nullopt;
};

// The states of a server, in order; it never goes back.
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
  WorkPool& workers;       // parse bodies, tokenise prompts
  WorkPool& long_workers;  // the same of long bodies, with a low priority: megabytes of text delay no short prompt
  WorkPool& answers;       // format the engine's outputs
  WorkPool& transcribers;  // each thread runs one transcription at a time, as a whole
  const Clock& clock;
  int64_t start_time_unix = 0;  // when Server::serve took the model: "created" of /v1/models
  std::atomic<ServerState>& state;
  Instance* instance = nullptr;     // null: a server of its own
  CacheSalts salts = {};            // of options.cache_scope
  RealtimeHub* realtime = nullptr;  // null: no live audio
  ClientSecrets client_secrets = {};
};

// One admitted request. The threads that work on it share ownership; its destructor releases what it still holds.
struct ApiCall {
  HttpRequest http;
  std::shared_ptr<Responder> responder;
  Admission::Places places;       // of one request; released once the engine counts it
  Admission::Places more_places;  // of the further prompts of a list
  Admission::Charge body_charge;  // of the body's bytes
  Admission::Charge charge;       // of prompts or audio, until the answer is complete
  TimePoint arrival{};            // when its head was read

  std::optional<TimePoint> deadline(const ServerContext& context) const {
    if (!context.options.request_timeout.has_value()) return std::nullopt;
    return arrival + *context.options.request_timeout;
  }
};
using ApiCallPtr = std::shared_ptr<ApiCall>;

}  // namespace transept

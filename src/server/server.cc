#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/realtime_live.h"
#include "server/transcription_ask.h"

namespace transept {
namespace {

constexpr int32_t kMinArrivingPerPeer = 16;  // one address may be many people's

}  // namespace

bool is_loopback_host(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

StatusOr<std::unique_ptr<Server>> Server::start(ServerOptions options, const AccessLog::Options& log,
                                                const Clock& clock) {
  options.listens_on_loopback = is_loopback_host(options.http.host);
  std::unique_ptr<Server> server(new Server(std::move(options), log, clock));
  ASSIGN_OR_RETURN(server->http_, HttpServer::start(server->options_.http, server->service_));
  return server;
}

Server::Server(ServerOptions options, const AccessLog::Options& log, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      log_(log),
      metrics_(options_.served_model_names.front()),
      service_(options_, state_, metrics_, log_) {}

void Server::serve(LoadedModel model, std::unique_ptr<Instance> instance) {
  model_ = std::move(model);
  instance_ = std::move(instance);
  // Who may wait is for Admission to say: the engine takes whatever comes past it.
  AsyncEngine::Options queue;
  queue.max_queued_requests = std::numeric_limits<int32_t>::max();
  engine_ = model_.encoder_engine != nullptr
                ? std::make_unique<AsyncEngine>(std::move(model_.encoder_engine), queue, clock_)
                : std::make_unique<AsyncEngine>(model_.take_engines(), queue, clock_);
  admission_ = std::make_unique<Admission>(
      options_.queue, [this] { return engine_->num_queued(); }, clock_);
  incoming_ = std::make_unique<IncomingRequests>(
      IncomingRequests::Options{
          .max_requests = options_.queue.max_requests,
          .max_unhurried = options_.max_arriving,
          .max_unhurried_per_peer = options_.max_arriving_per_peer,
          .max_requests_per_peer = std::max(kMinArrivingPerPeer, options_.queue.max_requests / 2)},
      metrics_, clock_);
  StatusOr<SpeechModel> speech = SpeechModel::of(model_, *engine_);
  const Status why_no_speech = speech.status();
  if (speech.ok()) speech_.emplace(std::move(speech).value());
  const int num_workers = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  workers_ = std::make_unique<WorkPool>(num_workers);
  // Half of the processors are left, so that a thread that wakes finds one.
  long_workers_ = std::make_unique<WorkPool>(num_workers / 2, WorkPool::Priority::kLow);
  answers_ = std::make_unique<WorkPool>(2);
  transcribers_ = std::make_unique<WorkPool>(speech_.has_value() ? options_.max_transcriptions : 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  context_.emplace(ServerContext{.options = options_,
                                 .model = model_,
                                 .engine = *engine_,
                                 .speech = speech_.has_value() ? &*speech_ : nullptr,
                                 .why_no_speech = why_no_speech,
                                 .admission = *admission_,
                                 .incoming = *incoming_,
                                 .metrics = metrics_,
                                 .log = log_,
                                 .workers = *workers_,
                                 .long_workers = *long_workers_,
                                 .answers = *answers_,
                                 .transcribers = *transcribers_,
                                 .clock = clock_,
                                 .start_time_unix = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                                 .state = state_,
                                 .instance = instance_.get()});
  if (instance_ != nullptr && instance_->secret() != nullptr) {
    context_->client_secrets = ClientSecrets(*instance_->secret());
  }
  serve_live();
  if (instance_ != nullptr) {
    instance_->begin(*engine_, model_, [this](const TicketEnd& end) {
      const Ticket& ticket = end.ticket;
      log_.log_encode({.transfer = ticket.key.request_id,
                       .input_id = ticket.key.input_id,
                       .consumer = ticket.consumer.name,
                       .num_positions = ticket.num_positions,
                       .outcome = end.outcome,
                       .seconds = end.seconds,
                       .request_id = ticket.trace.request_id,
                       .traceparent = ticket.trace.traceparent});
    });
  }
  service_.set_context(*context_);
  ServerState loading = ServerState::kLoading;
  state_.compare_exchange_strong(loading, ServerState::kReady);
}

// Items are transcribed as a file is that comes without fields.
void Server::serve_live() {
  if (!speech_.has_value() || options_.role == InstanceRole::kEncode) return;
  StatusOr<TranscriptionAsk> ask = transcription_ask(*context_, ParsedRequest(), /*translate=*/false);
  const int num_threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  StatusOr<std::unique_ptr<RealtimeSpeech>> live =
      ask.ok() ? make_live_speech(*speech_, {.num_threads = num_threads,
                                             .max_sessions = options_.live.max_sessions,
                                             .transcribe = std::move(ask->options)})
               : ask.status();
  if (!live.ok()) return log_warning("no live audio (/v1/realtime): ", error_message(live.status()));
  realtime_ = std::make_unique<RealtimeHub>(std::move(live).value(), options_.live, metrics_, clock_);
  context_->realtime = realtime_.get();
}

bool Server::drain(Duration timeout, const std::function<bool()>& keep_waiting) {
  state_ = ServerState::kDraining;  // first: a connection that is told to go asks again elsewhere
  http_->drain();
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (instance_ != nullptr && !instance_->drain(std::chrono::milliseconds(50))) {
    if (!keep_waiting() || std::chrono::steady_clock::now() >= end) return false;
  }
  while (!http_->wait_until_answered(std::chrono::milliseconds(50))) {
    if (!keep_waiting() || std::chrono::steady_clock::now() >= end) return false;
  }
  return true;
}

void Server::give_up(const Status& error, Duration timeout) {
  if (engine_ == nullptr) return;
  engine_->give_up(error);
  drain(timeout, [] { return true; });
}

// From the outside in: nobody asks any more, then nothing is computed, then nothing is answered.
void Server::stop() {
  if (http_ == nullptr) return;  // it never listened
  state_ = ServerState::kDraining;
  http_->stop();
  if (engine_ == nullptr || std::exchange(is_stopped_, true)) return;
  context_->realtime = nullptr;
  realtime_.reset();  // its sessions have gone with their connections
  if (instance_ != nullptr) instance_->end_work();
  const bool only_encodes = options_.role == InstanceRole::kEncode;
  if (only_encodes) {
    model_.encoder_engine = engine_->stop_encoder();
  } else {
    model_.give_back(engine_->stop_all());
  }
  transcribers_->stop();
  workers_->stop();
  long_workers_->stop();
  answers_->stop();
  instance_.reset();  // before the memory of the engines, into which it receives rows
}

}  // namespace transept

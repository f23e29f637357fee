// The whole server: listens at once, answers 503 (loading) until it has a model, serves the model, drains, stops.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::start(options, log, clock));
//   server->serve(std::move(model));
//   ... a signal ...
//   const bool all_answered = server->drain(timeout);
//   server->stop();
//
// One thread owns it and calls its functions: not thread-safe. It owns the model, the engine and all threads.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/api_service.h"
#include "server/server_context.h"

namespace transept {

// Addresses that only this machine can reach. (A name that resolves to such a one is "localhost".)
bool is_loopback_host(std::string_view host);

class Server final {
 public:
  // Listens. Borrows the clock. Sets options.listens_on_loopback from the host. Errors: those of HttpServer::start.
  // REQUIRES: options.served_model_names is not empty.
  static StatusOr<std::unique_ptr<Server>> start(ServerOptions options, const AccessLog::Options& log,
                                                 const Clock& clock);
  ~Server() { stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes the model and becomes ready, unless it drains already. `instance`: that it was loaded for, if options.role
  // has a value. Call once.
  void serve(LoadedModel model, std::unique_ptr<Instance> instance = nullptr);

  // Stops taking new work (503; tickets, too) and waits for what is in flight. Connections close behind their current
  // answers, and at once between two requests, so that clients go elsewhere. False: some request was not answered
  // within `timeout`, or `keep_waiting` (called every 50 ms) returned false.
  bool drain(Duration timeout, const std::function<bool()>& keep_waiting);
  // Closes all connections, and stops the engine and the threads. Idempotent.
  void stop();

  const HttpServer& http() const { return *http_; }
  // Why the engine failed; ok if it did not, and before serve().
  Status engine_failure() const { return engine_ == nullptr ? ok_status() : engine_->failure(); }
  // Answers all requests in flight with this error, which the engine is about to find: within `timeout`, but for what
  // does not wait for the engine.
  void give_up(const Status& error, Duration timeout);
  // Null before serve().
  const ServerContext* context() const { return context_.has_value() ? &*context_ : nullptr; }

 private:
  Server(ServerOptions options, const AccessLog::Options& log, const Clock& clock);

  void serve_live();

  ServerOptions options_;
  const Clock& clock_;
  std::atomic<ServerState> state_{ServerState::kLoading};
  bool is_stopped_ = false;
  AccessLog log_;
  ServerMetrics metrics_;
  ApiService service_;
  std::unique_ptr<WorkPool> workers_, long_workers_, answers_, transcribers_;
  LoadedModel model_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<AsyncEngine> engine_;
  std::optional<SpeechModel> speech_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<IncomingRequests> incoming_;
  std::unique_ptr<RealtimeHub> realtime_;
  std::optional<ServerContext> context_;
  std::unique_ptr<HttpServer> http_;  // last: destroyed first, so that it answers with none of the above destroyed
};

}  // namespace transept

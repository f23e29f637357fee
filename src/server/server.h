// The server, whole: listens at once, answers "loading" until it is given a model, serves it, drains, stops.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::start(options, log, clock));
//   server->serve(std::move(model));
//   ... a signal ...
//   const bool all_answered = server->drain(timeout);
//   server->stop();
//
// One thread owns it; what it serves with is inside.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "server/api_service.h"
#include "server/server_context.h"

namespace transept {

class Server final {
 public:
  // Borrows the clock. Errors: HttpServer's.
  static StatusOr<std::unique_ptr<Server>> start(ServerOptions options, const AccessLog::Options& log,
                                                 const Clock& clock);
  ~Server() { stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes the model, and is ready. Once.
  void serve(LoadedModel model);

  // Not ready from here on, new work is 503; what is in flight goes on. Connections close behind the answer that they
  // are at, and idle ones at once, so that clients ask elsewhere. False: not all of it was answered within
  // `timeout`, or `keep_waiting` said no (asked every 50 ms).
  bool drain(Duration timeout, const std::function<bool()>& keep_waiting);
  // Cuts what is left. Idempotent.
  void stop();

  const HttpServer& http() const { return *http_; }
  // What made the engine fail; ok: nothing did.
  Status engine_failure() const { return engine_ == nullptr ? ok_status() : engine_->failure(); }
  // Null before serve().
  const ServerContext* context() const { return context_.has_value() ? &*context_ : nullptr; }

 private:
  Server(ServerOptions options, const AccessLog::Options& log, const Clock& clock);

  ServerOptions options_;
  const Clock& clock_;
  std::atomic<ServerState> state_{ServerState::kLoading};
  AccessLog log_;
  ServerMetrics metrics_;
  ApiService service_;
  std::unique_ptr<WorkPool> workers_, tokenizers_, answers_, transcribers_;
  LoadedModel model_;
  std::unique_ptr<AsyncEngine> engine_;
  std::optional<SpeechModel> speech_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<IncomingRequests> incoming_;
  std::optional<ServerContext> context_;
  std::unique_ptr<HttpServer> http_;  // last: nothing above goes while it answers
};

}  // namespace transept

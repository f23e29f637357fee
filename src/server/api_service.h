// The API as an HttpService: finds the route of a head, decides whether to admit the request (host, origin, key, state,
// queue), and posts it to the pool of threads that answers it. I/O threads never wait here for the engine, the parsing
// of a body, or a file. Owned by Server. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/http_server.h"
#include "server/ids_in_work.h"
#include "server/server_context.h"

namespace transept {

struct Route;  // routes.h

class ApiService final : public HttpService {
 public:
  // Borrows all. Before set_context, requests are answered 503 (loading). `more_routes`: besides routes().
  ApiService(const ServerOptions& options, std::atomic<ServerState>& state, ServerMetrics& metrics,
             const AccessLog& log, std::span<const Route> more_routes = {})
      : options_(options), state_(state), metrics_(metrics), log_(log), more_routes_(more_routes) {}

  // Sets what routes work with; requests are served once `state` is kReady, too. `context` must outlive the last
  // request.
  void set_context(const ServerContext& context) { context_.store(&context); }

  Decision on_head(const HttpRequest& request) override;
  std::optional<HttpResponse> on_body_awaited(const HttpRequest& request, const std::shared_ptr<void>& ticket,
                                              const std::shared_ptr<IncomingBody>& body) override;
  std::optional<HttpResponse> on_body_bytes(const std::shared_ptr<void>& ticket, size_t num_bytes) override;
  void on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) override;
  HttpResponse on_error(int status, const std::string& reason, const std::string& request_id) override;
  void on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) override;

 private:
  struct Ticket;

  const Route* route_of(const HttpRequest& request) const;
  std::optional<HttpResponse> refuse(const HttpRequest& request) const;
  std::optional<HttpResponse> admit(const HttpRequest& request, const Route& route, size_t max_body_bytes) const;
  Decision open_socket(const HttpRequest& request, const Route& route) const;
  std::shared_ptr<Responder> name(const HttpRequest& request, std::shared_ptr<Responder> responder);
  HttpResponse refusal_of(const Status& status, std::string_view why) const;
  bool is_allowed_host(const HttpRequest& request) const;
  bool is_allowed_origin(const HttpRequest& request) const;
  bool needs_key(const HttpRequest& request) const;
  bool is_client_secret(std::string_view key) const;
  std::optional<HttpResponse> refuse_key(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;
  void add_headers(const HttpRequest& request, HttpResponse& response) const;
  HttpResponse answer_info(const HttpRequest& request) const;

  const ServerOptions& options_;
  std::atomic<ServerState>& state_;
  ServerMetrics& metrics_;
  const AccessLog& log_;
  const std::span<const Route> more_routes_;
  std::atomic<const ServerContext*> context_{nullptr};
  const std::shared_ptr<IdsInWork> ids_ = std::make_shared<IdsInWork>();  // of a decode instance; responders outlive it
};

}  // namespace transept

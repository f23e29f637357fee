// The API as an HttpService: which route a head is for, whether it may come in (host, origin, key, state, queue), and
// on which threads it is answered. I/O threads never wait here for the engine, a body's parsing or a file.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "net/http_server.h"
#include "server/server_context.h"

namespace transept {

class ApiService final : public HttpService {
 public:
  // Borrows all. Until set_context the server is loading, and says so.
  ApiService(const ServerOptions& options, std::atomic<ServerState>& state, ServerMetrics& metrics,
             const AccessLog& log)
      : options_(options), state_(state), metrics_(metrics), log_(log) {}

  // From here on requests are served. `context` must outlive the last of them.
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

  std::optional<HttpResponse> refuse(const HttpRequest& request) const;
  std::optional<HttpResponse> admit(const HttpRequest& request, size_t max_body_bytes) const;
  HttpResponse refusal_of(const Status& status, std::string_view why) const;
  bool is_allowed_host(const HttpRequest& request) const;
  bool is_allowed_origin(const HttpRequest& request) const;
  bool needs_key(const HttpRequest& request) const;
  HttpResponse preflight(const HttpRequest& request) const;
  void add_headers(const HttpRequest& request, HttpResponse& response) const;
  HttpResponse answer_info(const HttpRequest& request) const;

  const ServerOptions& options_;
  std::atomic<ServerState>& state_;
  ServerMetrics& metrics_;
  const AccessLog& log_;
  std::atomic<const ServerContext*> context_{nullptr};
};

}  // namespace transept

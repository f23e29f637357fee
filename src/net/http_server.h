// HTTP/1.1 for the API: connections, limits, timeouts, streaming. Knows no route and no engine: an HttpService says,
// once a request's head is in, whether its body is wanted, and answers whenever it likes through the request's
// Responder.
//
// Owns its I/O threads. They only move bytes: a service must pass work on (HttpService::on_request) and return.
// Sources: RFC 9110, RFC 9112; refused as RFC 9112, 11.2 (request smuggling) advises: Content-Length beside
// Transfer-Encoding, several Content-Lengths, a transfer coding other than chunked, bare LF or CR as a line's end,
// spaces before a header's colon, folded headers, malformed chunk sizes, HTTP/1.0 with Transfer-Encoding, no or several
// Hosts. A malformed request's connection is closed behind the answer (which a client that sends on can still read); so
// is one whose service refused a request.
//
// Out of descriptors (or of memory for one), a server still answers: each address listens with one descriptor kept
// back, which takes one connection at a time, and tells it 503; the others wait in the system's queue until it is free
// again. The log says so, at most once a second for an address.
//
// A client that ends its sending side counts as gone, even if it would still read: nothing tells the two apart, and an
// abandoned request must not be worked on. Up to 64 KiB of requests that came before their turn are kept for it; a
// client that sends more than that ahead is not seen to go until its answer is being sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "net/http.h"
#include "net/http_server_options.h"
#include "net/http_service.h"

namespace transept {

class HttpServer final {
 public:
  // Connections that get an answer that there are too many; further ones are closed without an answer.
  static constexpr size_t kMaxRefusals = 64;

  using Options = HttpServerOptions;

  // Listens; connections are served from here on. Borrows the service. Errors: an address that cannot be had (names
  // host and port); no descriptors for the reactor. Throws std::system_error without threads, as std::thread does.
  static StatusOr<std::unique_ptr<HttpServer>> start(const Options& options, HttpService& service);

  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string address() const;  // "127.0.0.1:8000", "[::1]:8000": for people
  bool is_loopback() const;     // only this machine can reach it
  size_t num_connections() const;

  // Connections close behind the answer that they are at (Connection: close), idle ones at once; new ones are still
  // accepted and served, one request each. Idempotent.
  void drain();
  // True: no answer was owed any more within that time.
  bool wait_until_answered(std::chrono::milliseconds timeout);
  // Closes everything, joins the threads; clients that were owed an answer are gone. Responders may live on.
  // Idempotent.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept

// HTTP/1.1 for the API: connections, limits, timeouts, streaming. Independent of routes and the engine: an HttpService
// decides from a request's head whether to read the body, and answers at any later time through the Responder.
//
// The server owns its I/O threads. They only move bytes: a service must pass work on (HttpService::on_request) and
// return. The owner of the HttpServer starts and stops it; its functions are thread-safe, but an I/O thread must not
// call stop().
//
// Sources: RFC 9110, RFC 9112. As RFC 9112, 11.2 (request smuggling) advises, it refuses: Content-Length beside
// Transfer-Encoding, several Content-Lengths, a transfer coding other than chunked, bare LF or CR as a line's end,
// spaces before a header's colon, folded headers, malformed chunk sizes, HTTP/1.0 with Transfer-Encoding, no Host
// (HTTP/1.1) or several. After a malformed request the connection closes behind the answer, which a client that is
// still sending can read. The same holds for a request that the service refused, unless its body was small and came
// with its head.
//
// Without free descriptors (of the process or of the system) the server still answers. Each address keeps a spare
// descriptor, which accepts one connection at a time and answers 503; the other connections wait in the system's queue.
// The log has at most one line a second for an address.
//
// A client that ends its sending side counts as gone, even if it would still read: the server cannot tell the two
// apart, and must not work on an abandoned request. The connection buffers up to 64 KiB of pipelined requests. If a
// client sends more ahead, the server does not notice that it goes until it sends the answer.
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
  // This many connections beyond max_connections are answered 503 at a time; further ones close without an answer.
  static constexpr size_t kMaxRefusals = 64;

  using Options = HttpServerOptions;

  // Listens on all addresses of options.host, and starts to serve. Borrows the service. Errors: kAlreadyExists (the
  // address is in use) and kUnavailable (it cannot be bound), with host and port; kUnavailable without descriptors for
  // the reactor. Throws std::system_error if the system gives no thread.
  static StatusOr<std::unique_ptr<HttpServer>> start(const Options& options, HttpService& service);

  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string address() const;  // the first address, for people: "127.0.0.1:8000", "[::1]:8000"
  bool is_loopback() const;     // only this machine can reach the server
  size_t num_connections() const;

  // Each connection closes behind its current answer (Connection: close); those between two requests close at once. New
  // connections are still accepted, and serve one request each. Idempotent.
  void drain();
  // Waits until all requests are answered. False: timed out.
  bool wait_until_answered(std::chrono::milliseconds timeout);
  // Closes all sockets and joins the threads; clients that wait for an answer count as gone. Responders may outlive it.
  // Idempotent.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept

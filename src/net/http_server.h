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

namespace transept {

// One request's way back. Thread-safe, held by as many as like; the last one to let go of it without an answer sends
// 500. Every function returns at once; bytes go out on the I/O thread. Once the client has gone, all do nothing.
class Responder {
 public:
  virtual ~Responder() = default;

  // The whole answer. Once, and not after start_stream.
  virtual void respond(HttpResponse response) = 0;

  // An answer in pieces (chunked; of HTTP/1.0 clients until the connection closes): the head, whose body is the first
  // piece if not empty; then pieces; then finish(). abandon() instead of finish(): the connection is closed without the
  // last chunk, so that the client sees that something is missing.
  virtual void start_stream(HttpResponse head) = 0;
  virtual void write(std::string piece) = 0;
  virtual void finish() = 0;
  virtual void abandon() = 0;

  // The client has gone, or was dropped because it read too slowly.
  virtual bool is_gone() const = 0;
  // That is because more than HttpServer::Options::max_unsent_bytes waited for it, or it took nothing for
  // write_timeout.
  virtual bool was_too_slow() const = 0;
  // Bytes that wait for the client.
  virtual size_t num_unsent_bytes() const = 0;
  // Called once, on an I/O thread, when the client goes before respond(), finish() or abandon(): at once (on this
  // thread) if it has gone already; never, and let go of, behind one of those. At most one function: a second replaces
  // the first. It must be quick.
  virtual void on_gone(std::function<void()> callback) = 0;
  // Seconds since the request's head was in.
  virtual double seconds() const = 0;
};

// A body that has not wholly come. Thread-safe; may outlive its connection.
class IncomingBody {
 public:
  virtual ~IncomingBody() = default;
  // The request ends with this answer, and the connection behind it, unless the body is whole or gone by then. Returns
  // at once.
  virtual void refuse(HttpResponse response) = 0;
};

class HttpService {
 public:
  // What is to be done with a request whose head is in, and its body not yet read (HttpRequest::body is empty).
  struct Decision {
    // The answer, instead of reading the body; the connection closes behind it, unless the body was small and there.
    std::optional<HttpResponse> refusal;
    size_t max_body_bytes = 0;     // more is 413 by on_error, without being read whole
    std::shared_ptr<void> ticket;  // kept until the request is handed over, or is dropped before: a place in a queue
  };

  virtual ~HttpService() = default;

  // I/O threads, several at once; quick.
  virtual Decision on_head(const HttpRequest& request) = 0;
  // More of the body is waited for than came with the head. Once a request at most. An answer: instead of reading on.
  // I/O threads, several at once; quick.
  virtual std::optional<HttpResponse> on_body_awaited(const HttpRequest& /*request*/,
                                                      const std::shared_ptr<void>& /*ticket*/,
                                                      const std::shared_ptr<IncomingBody>& /*body*/) {
    return std::nullopt;
  }
  // So many bytes of the body are here by now; each time that some came. An answer: instead of reading on. As above.
  virtual std::optional<HttpResponse> on_body_bytes(const std::shared_ptr<void>& /*ticket*/, size_t /*num_bytes*/) {
    return std::nullopt;
  }
  // I/O threads, several at once; must pass the work on and return.
  virtual void on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) = 0;
  // The answer to what never became a request: 400 (what is malformed, in `reason`, which is fit for clients), 408
  // (head or body came too slowly), 413 (body), 414, 431 (head), 417, 501, 503 (too many connections), 505; and 500
  // where every Responder was let go of without an answer. I/O threads; quick.
  virtual HttpResponse on_error(int status, const std::string& reason, const std::string& request_id) = 0;
  // An answer's end (or the client's: 499), for logs and metrics: once for every on_head, and for every on_error of
  // what had no on_head. `request` has no body, and of malformed ones what could be read. An abandoned stream's status
  // is its head's. I/O threads; quick.
  virtual void on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) = 0;
};

class HttpServer final {
 public:
  // Connections that are told that there are too many; beyond them nobody is told anything.
  static constexpr size_t kMaxRefusals = 64;

  struct Options {
    std::string host = "127.0.0.1";  // a name or an address; "::" and "0.0.0.0" listen everywhere
    uint16_t port = 8000;            // 0: the system chooses
    int num_threads = 2;
    size_t max_request_line_bytes = 8 << 10;
    size_t max_header_bytes = 16 << 10;
    size_t max_headers = 100;
    size_t max_connections = 4096;  // further ones are answered 503 and closed
    std::chrono::milliseconds header_timeout{
        10000};  // from a request's first byte (a new connection: from its accept) to the end of its head; one that
                 // never sent a byte is closed silently
    std::chrono::milliseconds idle_timeout{60000};   // of a connection between two requests
    std::chrono::milliseconds body_timeout{60000};   // without a byte of the body; beyond it, at 1 KiB/s at least
    std::chrono::milliseconds write_timeout{30000};  // the client takes nothing of what waits for it
    size_t max_unsent_bytes = 4 << 20;               // of one response's stream; beyond it the client is dropped
  };

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

// What an HttpServer hands requests to, and how these are answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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
  // That is because more than HttpServerOptions::max_unsent_bytes waited for it, or it took nothing for
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

}  // namespace transept

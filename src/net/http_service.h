// The interfaces between an HttpServer and its service: HttpService takes requests, Responder takes their answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http.h"
#include "net/tunnel.h"
#include "net/websocket.h"

namespace transept {

// Answers one request. Thread-safe; ownership is shared. If the last owner releases it without an answer, the server
// sends 500; if it releases an unfinished stream, the stream is abandoned. Functions return at once; an I/O thread
// sends the bytes. After the client has gone, answers and pieces are dropped.
class Responder {
 public:
  virtual ~Responder() = default;

  // Sends the whole answer. Has no effect after an answer has begun.
  virtual void respond(HttpResponse response) = 0;

  // Sends an answer in pieces (chunked; to HTTP/1.0 clients, until the connection closes). start_stream takes the head,
  // with the first piece as its body if not empty; then write() each piece; then finish(). abandon() in place of
  // finish() closes the connection without the last chunk, so that the client notices the loss. A write() that leaves
  // more than HttpServerOptions::max_unsent_bytes unsent drops the client, unless no other bytes wait.
  virtual void start_stream(HttpResponse head) = 0;
  virtual void write(std::string piece) = 0;
  virtual void finish() = 0;
  virtual void abandon() = 0;

  // Answers a request whose Decision has may_tunnel with 101, and connects the client with another server; `tunnel` is
  // dropped if an answer has begun or the client has gone. To the service it is the answer's end; on_done comes when
  // the tunnel has ended.
  virtual void start_tunnel(Tunnel tunnel) = 0;

  // Whether the client has gone, or was dropped because it read too slowly.
  virtual bool is_gone() const = 0;
  // Whether the client was dropped: more than HttpServerOptions::max_unsent_bytes waited for it, or it took no byte for
  // write_timeout.
  virtual bool was_too_slow() const = 0;
  // Bytes that wait for the client, or are being sent; 0 once it has gone.
  virtual size_t num_unsent_bytes() const = 0;
  // Sets the callback for a client that goes before respond(), finish() or abandon(). It is called once, on an I/O
  // thread; or at once, on this thread, if the client has gone already. After one of those functions it is destroyed
  // uncalled. A second callback replaces the first. It must be quick.
  virtual void on_gone(std::function<void()> callback) = 0;
  // Seconds since the request's head was read.
  virtual double seconds() const = 0;
};

// A request body that is still arriving. Thread-safe; may outlive its connection.
class IncomingBody {
 public:
  virtual ~IncomingBody() = default;
  // Ends the request with this answer, and then the connection. Has no effect if the body is complete or the client has
  // gone by then. Returns at once.
  virtual void refuse(HttpResponse response) = 0;
};

// Takes the requests of an HttpServer, which borrows it. I/O threads call all its functions, concurrently; each must
// return quickly.
class HttpService {
 public:
  // How to proceed with a request whose head is read, and whose body is not (HttpRequest::body is empty).
  struct Decision {
    // The answer, in place of reading the body. The connection closes behind it, unless the body is at most 16 KiB and
    // came with the head.
    std::optional<HttpResponse> refusal;
    size_t max_body_bytes = 0;     // a larger body is 413 by on_error, and is not read whole
    std::shared_ptr<void> ticket;  // a place in a queue: kept until on_request takes it, or the request is dropped
    // Opens a WebSocket, in place of a request's answer: there is no on_request. If the head is no good handshake, the
    // answer is on_error's, and the handler is destroyed unused.
    std::optional<WebSocketUpgrade> upgrade = std::nullopt;
    // The request has to be the handshake of a WebSocket that another server serves: Responder::start_tunnel may answer
    // it. If its head is no good handshake, the answer is on_error's, and there is no on_request. Any other answer ends
    // the connection, since what comes behind the head may be frames.
    bool may_tunnel = false;
  };

  virtual ~HttpService() = default;

  virtual Decision on_head(const HttpRequest& request) = 0;
  // Called at most once a request, if not all of the body came with the head. Returns an answer in place of reading on,
  // or nullopt.
  virtual std::optional<HttpResponse> on_body_awaited(const HttpRequest& /*request*/,
                                                      const std::shared_ptr<void>& /*ticket*/,
                                                      const std::shared_ptr<IncomingBody>& /*body*/) {
    return std::nullopt;
  }
  // Called each time that bytes of the body arrive (the first may come before on_body_awaited). `num_bytes`: of the
  // body so far. Returns an answer in place of reading on, or nullopt.
  virtual std::optional<HttpResponse> on_body_bytes(const std::shared_ptr<void>& /*ticket*/, size_t /*num_bytes*/) {
    return std::nullopt;
  }
  // Takes a complete request. Must pass the work on and return.
  virtual void on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) = 0;
  // Returns the answer to a request that the service did not answer: 400 (malformed; `reason` says how, and may be
  // shown to clients), 408 (head or body came too slowly), 413 (body), 414, 431 (head), 417, 501, 503 (too many
  // connections), 505; of a WebSocket's handshake 400, 405, 426, 431, 505; and 500 if the Responder was released
  // without an answer.
  virtual HttpResponse on_error(int status, const std::string& reason, const std::string& request_id) = 0;
  // Reports the end of an answer, for logs and metrics: once for each on_head, and for each on_error without an
  // on_head. status is 499 if the client went first; of an abandoned stream it is the head's; of a WebSocket or a
  // tunnel that has ended it is 101. `request` has no body; of a malformed request it has the part that was read.
  virtual void on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) = 0;
};

}  // namespace transept

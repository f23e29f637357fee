// A client's WebSocket (RFC 6455), for `bench live` and tests: frames, masks and close codes are Beast's. Owns the
// connection and a thread of its own. ws:// only: a proxy does TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/http.h"
#include "net/http_client.h"

namespace transept {

class WebSocketClient final {
 public:
  struct Options {
    std::chrono::milliseconds timeout{10000};  // of connecting and of the handshake
    size_t max_message_bytes = size_t{16} << 20;
  };
  // Called on the client's thread, one at a time; quick. They may not destroy the client.
  struct Handler {
    std::function<void(std::string message)> on_message;
    std::function<void(uint16_t code)> on_closed;  // once, the last; 1006: without a close frame
  };

  // Connects and shakes hands. `url`: its path has the query. Errors name host and port: kUnavailable,
  // kDeadlineExceeded; kFailedPrecondition with the status, if the server answers the handshake with another one than
  // 101; kInvalidArgument for a malformed header.
  static StatusOr<std::unique_ptr<WebSocketClient>> connect(const HttpUrl& url, const HttpHeaders& headers,
                                                            Handler handler, const Options& options);
  // Ends the connection at once. No call of the handler runs or follows.
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  // Queues a message. Thread-safe. Has no effect after the end. REQUIRES: a text is valid UTF-8.
  void send(std::string message, bool is_text);
  // Sends what is queued, then a close frame with 1000. Thread-safe.
  void close();

 private:
  class Impl;
  explicit WebSocketClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace transept

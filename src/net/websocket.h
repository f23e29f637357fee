// The interfaces between an HttpServer and the WebSockets of its service (RFC 6455): WebSocket sends, WebSocketHandler
// takes what comes. A service asks for one by HttpService::Decision::upgrade.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace transept {

// Close codes (RFC 6455, 7.4.1). kNone and kBroken are never sent.
struct WebSocketCode {
  static constexpr uint16_t kNormal = 1000, kGoingAway = 1001, kProtocolError = 1002, kUnsupported = 1003,
                            kNone = 1005,  // the client gave no code
      kBroken = 1006,                      // the connection ended without a close frame
      kBadText = 1007, kPolicy = 1008, kTooBig = 1009, kInternal = 1011;
};

// The server's side of one open WebSocket. Thread-safe; ownership is shared. It may outlive the connection and the
// server. Functions return at once; an I/O thread sends the bytes. After the client has gone, messages are dropped. If
// the last owner releases it, the connection stays open: only close() or the client ends it.
class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // Sends one message. REQUIRES: a text is valid UTF-8. One that leaves more than HttpServerOptions::max_unsent_bytes
  // unsent drops the client, unless no other bytes wait. Has no effect after close().
  virtual void send(std::string message, bool is_text) = 0;
  // Sends what waits, then a close frame, and ends the connection once the client has answered that, at the latest
  // after websocket_close_timeout. `why` is UTF-8, and cut at 123 bytes. The handler gets no further messages. A second
  // call has no effect. REQUIRES: a code that may be sent: 1000 to 1003, 1007 to 1011, 3000 to 4999.
  virtual void close(uint16_t code, std::string_view why) = 0;

  // Reads no further messages until resume_reading(), so that the client's socket fills up. At most one message, which
  // is on its way to the handler already, still comes. Meanwhile the server does not notice that the client goes,
  // unless it has something to send; and pings need no answer.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;
  // Whether messages may come up to 20 ms late (ReadTicker::kTick); false at first. Sockets that may are looked at
  // together, so a message that comes wakes no thread.
  virtual void set_patient(bool is_patient) = 0;

  // Bytes of messages that wait for the client or are being sent, and some for each message; 0 once it has gone.
  virtual size_t num_unsent_bytes() const = 0;
  // Whether the connection has ended, or is being dropped because the client read too slowly.
  virtual bool is_gone() const = 0;
};

// Takes the messages of one WebSocket. The connection owns it, calls its functions on an I/O thread, one at a time, and
// destroys it after the last one. Each must return quickly; what throws ends the WebSocket with kInternal.
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;

  // The handshake is answered: the first call. It is not made if the client went before.
  virtual void on_open(std::shared_ptr<WebSocket> socket) = 0;
  // A whole message; a text is valid UTF-8.
  virtual void on_message(std::string message, bool is_text) = 0;
  // The server drains. The handler must call WebSocket::close(), now or when it has sent what it owes. Called at most
  // once, and not after close().
  virtual void on_drain() = 0;
  // The WebSocket has ended: the last call, once for each on_open. `code`: of the close frame that came or was sent
  // first; kBroken without one; kPolicy if the client was dropped because it read too slowly.
  virtual void on_closed(uint16_t code) = 0;
};

// What becomes of a request that a service takes as a WebSocket.
struct WebSocketUpgrade {
  std::string subprotocol;             // one of those that the client offers (websocket_handshake.h); "": none
  size_t max_message_bytes = 1 << 20;  // a longer message closes with kTooBig, and is not read whole
  std::unique_ptr<WebSocketHandler> handler;
};

}  // namespace transept

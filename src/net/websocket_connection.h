// One WebSocket of an HttpServer (RFC 6455), from the answer to its handshake on: frames, masks, UTF-8 and close codes
// are Beast's; limits, pings and timeouts are here. HttpConnection owns it and keeps its socket for it. All functions
// run on the socket's strand.
//
// No extension is negotiated, so no message is compressed. A message has at most kMaxFragments frames, may not pause
// for body_timeout and must come at 1 KiB/s beyond it, as a request's body; else it closes with kPolicy. Every
// websocket_ping_interval a ping goes out, which keeps proxies from closing what is silent; a client of which nothing
// came since two pings before has gone. A client that takes no byte for write_timeout is dropped.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "net/http.h"
#include "net/http_server_options.h"
#include "net/read_ticker.h"
#include "net/websocket.h"

namespace transept {

class WebSocketConnection final {
 public:
  static constexpr uint64_t kMaxFragments = 1 << 16;
  // What is read at a time. Memory of a message follows the bytes that came, not those that its frame announces.
  static constexpr size_t kReadBytes = 16 << 10;

  // Borrows the socket, whose executor is a strand, and the options. `draining`: read when it opens. `ticker`: for
  // WebSocket::set_patient; null: that has no effect.
  WebSocketConnection(boost::asio::ip::tcp::socket& socket, const HttpServerOptions& options,
                      std::shared_ptr<const std::atomic<bool>> draining, std::shared_ptr<ReadTicker> ticker,
                      WebSocketUpgrade upgrade);
  ~WebSocketConnection();
  WebSocketConnection(const WebSocketConnection&) = delete;
  WebSocketConnection& operator=(const WebSocketConnection&) = delete;

  struct End {
    bool was_opened = false;  // the client has its 101
    bool was_closed = false;  // by a close frame: the sending side is shut down, and the client may still send
    uint64_t num_sent_bytes = 0;
  };
  // Answers the handshake and serves the WebSocket to its end. `leftover`: bytes that came behind the head. Call once;
  // does not throw. REQUIRES: check_websocket_handshake has nothing against the request's head.
  boost::asio::awaitable<End> run(const HttpRequest& request, std::string leftover);

  void drain();  // tells the handler, if it is open
  void stop();   // ends it. REQUIRES: the socket is closed

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace transept

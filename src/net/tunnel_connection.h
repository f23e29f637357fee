// The bytes between a client of an HttpServer and another server, once that one has switched protocols (tunnel.h).
// HttpConnection owns it and keeps the client's socket for it. All functions run on the socket's strand.
//
// Each direction holds kReadBytes at most: a side that does not read stops the other one. A client that takes no byte
// for write_timeout is dropped, and a server that says nothing for max_silence has gone (one that speaks WebSocket
// pings). A client that is not read for long is the server's to judge: it stops reading audio that it has not heard
// yet. A client that has ended its side gets what the server says for max_half_open more.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/http_server_options.h"
#include "net/tunnel.h"

namespace transept {

class TunnelConnection final {
 public:
  static constexpr size_t kReadBytes = 16 << 10;

  // Borrows the client's socket, whose executor is a strand, and the options.
  TunnelConnection(boost::asio::ip::tcp::socket& client, const HttpServerOptions& options, Tunnel tunnel);
  ~TunnelConnection();
  TunnelConnection(const TunnelConnection&) = delete;
  TunnelConnection& operator=(const TunnelConnection&) = delete;

  struct End {
    bool was_ended = false;         // by the server, and the client has all of it: our sending side is shut down
    bool client_has_ended = false;  // its end was read: to read on would wait for ever
    uint64_t num_sent_bytes = 0;
  };
  // Passes bytes on until both sides have ended. `from_client`: bytes that came behind the request;
  // `client_has_ended`: its end was read behind them, which Asio tells once. Call once.
  boost::asio::awaitable<End> run(std::string from_client, bool client_has_ended);

  void stop();  // ends it. REQUIRES: the client's socket is closed

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace transept

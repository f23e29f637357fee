// Addresses, limits and timeouts of an HttpServer. A value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace transept {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a name or an address; "0.0.0.0": all of IPv4, "::": all of IPv6 and IPv4
  uint16_t port = 8000;            // 0: the system chooses
  int num_threads = 2;
  size_t max_request_line_bytes = 8 << 10;
  size_t max_header_bytes = 16 << 10;
  size_t max_headers = 100;
  size_t max_connections = 4096;  // further ones are answered 503 (HttpServer::kMaxRefusals at a time) and closed
  std::chrono::milliseconds header_timeout{
      10000};  // from a request's first byte (a new connection: from its accept) to the end of its head; one that
               // never sent a byte is closed silently
  std::chrono::milliseconds idle_timeout{60000};  // of a connection between two requests
  std::chrono::milliseconds body_timeout{
      60000};  // of a pause in a body or a message; beyond it in all, 1 KiB/s is the least
  std::chrono::milliseconds write_timeout{30000};  // in which the client takes no byte of its answer
  size_t max_unsent_bytes = 4 << 20;               // of one stream or WebSocket; beyond it the client is dropped
  std::chrono::milliseconds websocket_ping_interval{20000};
  std::chrono::milliseconds websocket_close_timeout{5000};  // from our close frame to the client's
};

}  // namespace transept

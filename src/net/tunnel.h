// What becomes of a request that another server has answered with 101 (RFC 9110, 7.8): its connection's bytes go to
// that server, and that one's back, as they are. Given to Responder::start_tunnel().
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "net/client_socket.h"
#include "net/http.h"

namespace transept {

struct Tunnel {
  HttpHeaders headers;                             // of the 101, less those of the server's connection
  ClientSocket socket;                             // to the server
  std::string first_bytes;                         // which came from the server behind its head
  std::chrono::milliseconds max_silence{120'000};  // in which nothing comes from the server, before the tunnel ends
  std::chrono::milliseconds max_half_open{5000};   // from the client's end to the server's
  std::shared_ptr<void> ticket;                    // released when the tunnel has ended, or was not begun
};

}  // namespace transept

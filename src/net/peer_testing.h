// For tests: the other side of one connection, as bytes. Of one thread, but for take(), which may run on another until
// it returns.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

// Listens on a port of the system's choice, and takes one connection.
class Peer final {
 public:
  Peer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Peer() {
    end();
    ::close(listener_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  uint16_t port() const { return port_; }
  void take() { connection_ = ::accept(listener_, nullptr, nullptr); }
  void end() {
    if (connection_ >= 0) ::close(connection_);
    connection_ = -1;
  }
  void say(std::string_view bytes) {
    EXPECT_EQ(::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::string read(size_t size) {
    std::string bytes(size, '\0');
    EXPECT_EQ(::recv(connection_, bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  }
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(::setsockopt(connection_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    end();
  }

 private:
  int listener_, connection_ = -1;
  uint16_t port_ = 0;
};

}  // namespace transept

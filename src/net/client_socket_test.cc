// Proves how a connection's end is told: an end by the other side is no error, a reset is one.
#include "net/client_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace transept {
namespace {

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
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(::setsockopt(connection_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    end();
  }

 private:
  int listener_, connection_ = -1;
  uint16_t port_ = 0;
};

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

TEST(ClientSocketTest, AResetIsAnErrorAndAnEndIsNone) {
  for (const bool is_reset : {false, true}) {
    Peer peer;
    ClientSocket socket;
    ASSERT_TRUE(socket.connect("127.0.0.1", peer.port(), soon()).ok());
    peer.take();
    EXPECT_TRUE(socket.is_idle());
    is_reset ? peer.reset() : peer.end();
    std::array<char, 8> bytes{};
    const StatusOr<size_t> read = socket.read(bytes, soon());
    EXPECT_EQ(read.ok(), !is_reset) << read.status();
    if (read.ok()) {
      EXPECT_EQ(*read, 0u);
    } else {
      EXPECT_TRUE(absl::IsUnavailable(read.status())) << read.status();
    }
    EXPECT_FALSE(socket.is_idle());
  }
}

}  // namespace
}  // namespace transept

// Proves how a connection's end is told: an end by the other side is no error, a reset is one.
#include "net/client_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "base/folder_testing.h"

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

// What both sides say crosses: write() goes on when the peer has said something first.
TEST(ClientSocketTest, WritesAllWhateverThePeerSays) {
  Peer peer;
  ClientSocket socket;
  ASSERT_TRUE(socket.connect("127.0.0.1", peer.port(), soon()).ok());
  peer.take();
  peer.say("first");
  std::array<char, 8> bytes{};
  const std::string large(size_t{4} << 20, 'x');
  std::thread reads([&] { EXPECT_EQ(peer.read(large.size()), large); });
  EXPECT_TRUE(socket.write(large, soon()).ok());
  reads.join();
  EXPECT_EQ(*socket.read(bytes, soon()), 5u);
  peer.reset();
  Status status;
  while (status.ok()) status = socket.write(large, soon());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(ClientSocketTest, AWriteEndsByItsDeadline) {
  Peer peer;
  ClientSocket socket;
  ASSERT_TRUE(socket.connect("127.0.0.1", peer.port(), soon()).ok());
  peer.take();
  const std::string large(size_t{64} << 20, 'x');
  const TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_TRUE(absl::IsDeadlineExceeded(socket.write(large, deadline)));
}

TEST(ClientSocketTest, ShutDownEndsARead) {
  Peer peer;
  ClientSocket socket;
  ASSERT_TRUE(socket.connect("127.0.0.1", peer.port(), soon()).ok());
  peer.take();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    socket.shut_down();
  });
  std::array<char, 8> bytes{};
  EXPECT_EQ(*socket.read(bytes, soon()), 0u);
  other.join();
}

TEST(ClientSocketTest, ConnectsToUnixSockets) {
  const testing::TestFolder folder;
  const std::string path = folder.path() + "/socket";
  ClientSocket socket;
  const Status none = socket.connect_unix(path, soon());
  EXPECT_TRUE(absl::IsUnavailable(none)) << none;
  EXPECT_NE(none.message().find(path), std::string::npos) << none;
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  EXPECT_TRUE(socket.connect_unix(path, soon()).ok());
  const int connection = ::accept(listener, nullptr, nullptr);
  ASSERT_EQ(::send(connection, "hello", 5, MSG_NOSIGNAL), 5);
  std::array<char, 8> bytes{};
  EXPECT_EQ(*socket.read(bytes, soon()), 5u);
  ::close(connection);
  ::close(listener);
  const Status status = socket.connect_unix("/tmp/" + std::string(110, 'x'), soon());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("sockets allow 107"), std::string::npos) << status;
}

}  // namespace
}  // namespace transept

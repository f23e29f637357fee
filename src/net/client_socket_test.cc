// Proves how a connection's end is told: an end by the other side is no error, a reset is one.
#include "net/client_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "base/folder_testing.h"
#include "net/peer_testing.h"

namespace transept {
namespace {

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

// The descriptor of a program whose standard input is closed may be 0.
TEST(ClientSocketTest, EveryDescriptorIsOne) {
  const Peer peer;
  EXPECT_EXIT(
      {
        ::close(0);
        ClientSocket socket;
        const bool has_connected = socket.connect("127.0.0.1", peer.port(), soon()).ok();
        ::_exit(has_connected && socket.is_open() && socket.release() == 0 ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
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

// What becomes of tunnels: bytes go both ways as they are, and however one ends, its connection and its ticket go with
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_server_testing.h"
#include "net/peer_testing.h"

namespace transept {
namespace {

constexpr std::string_view kHandshake =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

class HttpServerTunnelTest : public HttpServerTest {
 protected:
  // A client whose tunnel has begun; the other server's side of it is peer_.
  std::unique_ptr<RawClient> open() {
    ticket_ = std::make_shared<int>();
    watched_ = ticket_;
    service.decide = [](const HttpRequest&) { return HttpService::Decision{.may_tunnel = true}; };
    service.handler = [this](const HttpRequest&, const std::shared_ptr<Responder>& responder) {
      ClientSocket socket;
      EXPECT_TRUE(socket.connect("127.0.0.1", peer_.port(), std::chrono::steady_clock::now() + 20s).ok());
      responder->start_tunnel({.headers = {{"Sec-WebSocket-Accept", "x"}},
                               .socket = std::move(socket),
                               .first_bytes = "first",
                               .max_silence = silence_,
                               .max_half_open = 500ms,
                               .ticket = std::exchange(ticket_, nullptr)});
    };
    start();
    auto client = std::make_unique<RawClient>(server->port());
    client->send(get_request("/live", kHandshake) + "early");
    peer_.take();
    return client;
  }
  // Once open()'s client has its answer.
  void expect_open(RawClient& client) {
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, ::testing::StartsWith("HTTP/1.1 101 "));
    num_head_bytes_ = head.size();
    EXPECT_EQ(client.read_bytes(5), "first");
    EXPECT_EQ(peer_.read(5), "early");
    EXPECT_FALSE(watched_.expired());
    EXPECT_EQ(server->num_connections(), 1u);
  }
  void expect_gone() {
    EXPECT_TRUE(becomes_true([&] { return watched_.expired() && server->num_connections() == 0; }));
    EXPECT_EQ(service.wait_for_done(1)[0].status, 101);
  }

  Peer peer_;
  std::shared_ptr<void> ticket_;
  std::weak_ptr<void> watched_;
  std::chrono::milliseconds silence_ = 20s;
  size_t num_head_bytes_ = 0;  // of the 101
};

TEST_F(HttpServerTunnelTest, BytesGoBothWaysUntilTheServerEnds) {
  const auto client = open();
  expect_open(*client);
  client->send(std::string("\0\xff", 2));
  EXPECT_EQ(peer_.read(2), std::string("\0\xff", 2));
  peer_.say("last");
  peer_.end();
  bool ended_well = false;
  EXPECT_EQ(client->read_all(&ended_well), "last");
  EXPECT_TRUE(ended_well);
  expect_gone();
  EXPECT_EQ(service.wait_for_done(1)[0].bytes_sent, num_head_bytes_ + 9);
}

// What the server says behind a client's end still comes.
TEST_F(HttpServerTunnelTest, AClientMayEndFirst) {
  const auto client = open();
  expect_open(*client);
  client->end_sending();
  peer_.say("last");
  peer_.end();
  EXPECT_EQ(client->read_all(), "last");
  expect_gone();
}

TEST_F(HttpServerTunnelTest, AServerThatDoesNotEndIsLeft) {
  const auto client = open();
  expect_open(*client);
  client->end_sending();
  EXPECT_EQ(client->read_all(), "");
  expect_gone();
}

TEST_F(HttpServerTunnelTest, AServerThatSaysNothingHasGone) {
  silence_ = 300ms;
  const auto client = open();
  expect_open(*client);
  EXPECT_EQ(client->read_all(), "");
  expect_gone();
}

TEST_F(HttpServerTunnelTest, AServerThatStopsEndsIts) {
  const auto client = open();
  expect_open(*client);
  server->stop();
  EXPECT_EQ(client->read_all(), "");
  EXPECT_TRUE(watched_.expired());
}

}  // namespace
}  // namespace transept

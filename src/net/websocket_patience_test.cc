// WebSockets whose messages may come a little late: they come whole and in order whatever happens meanwhile, and ends
// are seen.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net/read_ticker.h"
#include "net/websocket.h"
#include "net/websocket_testing.h"

namespace transept {
namespace {

using testing::ClientFrame;
using testing::close_frame;
using testing::kBinary;
using testing::kContinuation;
using testing::kPing;
using testing::kPong;
using testing::read_frame;
using testing::text_frame;

class WebSocketPatienceTest : public testing::WebSocketTest {
 protected:
  // Opens it, and lets one message pass: what comes behind it is waited for patiently.
  std::shared_ptr<WebSocket> open_patient(RawClient& client) {
    EXPECT_TRUE(open(client).starts_with("HTTP/1.1 101 "));
    std::shared_ptr<WebSocket> socket = record->wait_for_open();
    socket->set_patient(true);
    client.send(text_frame("first"));
    record->wait_for_messages(1);
    if (!is_silent) {
      EXPECT_EQ(read_frame(client)->payload, "first");
    }
    return socket;
  }
};

// Each waits for the next tick, as the one before it came at one.
TEST_F(WebSocketPatienceTest, MessagesComeAtTicks) {
  start();
  RawClient client(server->port());
  open_patient(client);
  constexpr int kNumMessages = 20;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kNumMessages; ++i) expect_echo(client, "message " + std::to_string(i));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, (kNumMessages - 1) * ReadTicker::kTick);
}

TEST_F(WebSocketPatienceTest, MessagesOfAnySizeComeWholeAndInOrder) {
  start();
  RawClient client(server->port());
  open_patient(client);
  std::vector<std::string> messages;
  for (const size_t size : {0, 1, 125, 126, 1500, 3200, 16370, 16384, 16400, 65535, 65536, 300000}) {
    messages.emplace_back(size, static_cast<char>('a' + messages.size()));
  }
  std::thread sender([&] {
    for (const std::string& message : messages) {
      // In two frames, and these in two pieces.
      const size_t half = message.size() / 2;
      const std::string bytes =
          ClientFrame{.opcode = kBinary, .payload = message.substr(0, half), .is_final = false}.bytes() +
          ClientFrame{.opcode = kContinuation, .payload = message.substr(half)}.bytes();
      client.send(bytes.substr(0, bytes.size() / 3));
      if (message.size() % 2 == 0) std::this_thread::sleep_for(3ms);
      client.send(bytes.substr(bytes.size() / 3));
    }
  });
  for (const std::string& message : messages) {
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->payload, message);
  }
  sender.join();
}

TEST_F(WebSocketPatienceTest, PatienceMayChangeAtAnyTime) {
  start();
  RawClient client(server->port());
  const auto socket = open_patient(client);
  std::atomic<bool> has_ended = false;
  std::thread changes([&] {
    std::mt19937 random(1);
    for (bool is_patient = false; !has_ended; is_patient = !is_patient) {
      socket->set_patient(is_patient);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
  });
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string text(random() % 20000, static_cast<char>('a' + i % 26));
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    expect_echo(client, text);
  }
  has_ended = true;
  changes.join();
}

// It waits for its tick when patience ends.
TEST_F(WebSocketPatienceTest, WhatWaitsComesWhenPatienceEnds) {
  start();
  RawClient client(server->port());
  const auto socket = open_patient(client);
  for (int i = 0; i < 50; ++i) {
    socket->set_patient(true);
    client.send(text_frame("waits"));
    socket->set_patient(false);
    EXPECT_EQ(read_frame(client)->payload, "waits");
    expect_echo(client, "impatient");
  }
}

TEST_F(WebSocketPatienceTest, AClientThatGoesIsNoticed) {
  start();
  {
    RawClient client(server->port());
    open_patient(client);
  }
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

TEST_F(WebSocketPatienceTest, AClientThatResetsIsNoticed) {
  start();
  {
    RawClient client(server->port());
    open_patient(client);
    client.reset();
  }
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

TEST_F(WebSocketPatienceTest, EitherSideMayClose) {
  start();
  RawClient client(server->port());
  open_patient(client);
  client.send(close_frame(4321));
  EXPECT_EQ(read_frame(client)->code(), 4321);
  EXPECT_EQ(record->wait_for_close(), 4321);

  RawClient other(server->port());
  open(other);
  EXPECT_TRUE(becomes_true([&] { return !record->wait_for_open()->is_gone(); }));
  record->wait_for_open()->set_patient(true);
  record->wait_for_open()->close(4000, "");
  EXPECT_EQ(read_frame(other)->code(), 4000);
  other.send(close_frame(4000));
  EXPECT_EQ(other.read_all(), "");
  EXPECT_TRUE(becomes_true([&] { return record->num_closes() == 2; }));
}

TEST_F(WebSocketPatienceTest, AReaderThatIsPausedReadsNothing) {
  is_silent = true;
  start();
  RawClient client(server->port());
  const auto socket = open_patient(client);
  socket->pause_reading();
  client.send(text_frame("one"));
  std::this_thread::sleep_for(3 * ReadTicker::kTick);
  client.send(text_frame("two"));
  std::this_thread::sleep_for(3 * ReadTicker::kTick);
  EXPECT_LE(record->num_messages(), 2);
  socket->resume_reading();
  EXPECT_EQ(record->wait_for_messages(3)[2].bytes, "two");
}

TEST_F(WebSocketPatienceTest, PingsAreAnswered) {
  options.websocket_ping_interval = 50ms;
  start();
  RawClient client(server->port());
  open_patient(client);
  for (int i = 0; i < 4; ++i) {
    const auto ping = read_frame(client);
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->opcode, kPing);
    client.send(ClientFrame{.opcode = kPong, .payload = ping->payload}.bytes());
  }
  client.send(ClientFrame{.opcode = kPing, .payload = "mine"}.bytes());
  for (;;) {
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    if (frame->opcode == kPing) continue;
    EXPECT_EQ(frame->opcode, kPong);
    EXPECT_EQ(frame->payload, "mine");
    break;
  }
}

TEST_F(WebSocketPatienceTest, StoppingEndsThem) {
  is_silent = true;
  start();
  RawClient client(server->port());
  open_patient(client);
  const auto begin = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(record->num_closes(), 1);
}

}  // namespace
}  // namespace transept

// WebSockets of a running server: what it sends, when it reads, pings, deadlines, bounds and draining.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/websocket.h"
#include "net/websocket_connection.h"
#include "net/websocket_testing.h"

namespace transept {
namespace {

using testing::ClientFrame;
using testing::close_frame;
using testing::kContinuation;
using testing::kPing;
using testing::kPong;
using testing::read_frame;
using testing::text_frame;
using WebSocketLimitsTest = testing::WebSocketTest;

// ---- What the server sends

TEST_F(WebSocketLimitsTest, AnyThreadMaySend) {
  start();
  RawClient client(server->port());
  open(client);
  const auto socket = record->wait_for_open();
  constexpr int kNumThreads = 4, kNumEach = 200;
  std::vector<std::thread> threads;
  threads.reserve(kNumThreads);
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNumEach; ++i) socket->send(std::to_string(t) + " " + std::to_string(i), true);
    });
  }
  std::vector<int> next(kNumThreads);
  for (int i = 0; i < kNumThreads * kNumEach; ++i) {
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    const auto thread = static_cast<size_t>(frame->payload[0] - '0');
    EXPECT_EQ(frame->payload, std::to_string(thread) + " " + std::to_string(next.at(thread)++));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(becomes_true([&] { return socket->num_unsent_bytes() == 0; }));
  EXPECT_FALSE(socket->is_gone());
}

TEST_F(WebSocketLimitsTest, CloseComesBehindWhatWasSent) {
  start();
  RawClient client(server->port());
  open(client);
  const auto socket = record->wait_for_open();
  const std::string large(1 << 20, 'x');
  socket->send(large, true);
  socket->send("last", true);
  socket->close(4000, "why");
  socket->send("too late", true);
  EXPECT_EQ(read_frame(client)->payload, large);
  EXPECT_EQ(read_frame(client)->payload, "last");
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), 4000);
  EXPECT_EQ(close->payload.substr(2), "why");
  client.send(text_frame("ignored") + close_frame(4000));
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(record->wait_for_close(), 4000);
  EXPECT_EQ(record->num_messages(), 0);
}

TEST_F(WebSocketLimitsTest, AClientThatDoesNotAnswerACloseIsLeft) {
  options.websocket_close_timeout = 100ms;
  start();
  RawClient client(server->port());
  open(client);
  record->wait_for_open()->close(1000, "");
  EXPECT_EQ(read_frame(client)->code(), 1000);
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(record->wait_for_close(), 1000);
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

TEST_F(WebSocketLimitsTest, AReaderThatStopsIsDroppedAtTheBound) {
  options.max_unsent_bytes = 1 << 20;
  start();
  RawClient client(server->port(), 4096);
  open(client);
  const auto socket = record->wait_for_open();
  for (int i = 0; i < 1000 && !socket->is_gone(); ++i) socket->send(std::string(64 << 10, 'x'), false);
  EXPECT_TRUE(socket->is_gone());
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kPolicy);
}

TEST_F(WebSocketLimitsTest, AReaderThatStopsIsDroppedInTime) {
  options.write_timeout = 100ms;
  options.max_unsent_bytes = 1 << 30;
  start();
  RawClient client(server->port(), 4096);
  open(client);
  record->wait_for_open()->send(std::string(32 << 20, 'x'), false);
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kPolicy);
  EXPECT_TRUE(record->wait_for_open()->is_gone());
}

TEST_F(WebSocketLimitsTest, AClientThatGoesWhileBytesWaitIsNotWaitedFor) {
  options.max_unsent_bytes = 1 << 30;
  start();
  RawClient client(server->port(), 4096);
  open(client);
  record->wait_for_open()->send(std::string(32 << 20, 'x'), false);
  client.end_sending();
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

// ---- What it reads, and when

TEST_F(WebSocketLimitsTest, WhilePausedTheClientsSocketFillsUp) {
  is_silent = true;
  start();
  RawClient client(server->port());
  open(client);
  const auto socket = record->wait_for_open();
  client.send(text_frame("first"));
  record->wait_for_messages(1);
  socket->pause_reading();
  constexpr size_t kNumMessages = 40;
  const std::string frame = text_frame(std::string(1 << 20, 'x'));
  std::thread sender([&] {
    for (size_t i = 0; i < kNumMessages; ++i) client.send(frame);
  });
  std::this_thread::sleep_for(200ms);
  EXPECT_LE(record->num_messages(), 2);
  socket->resume_reading();
  record->wait_for_messages(1 + kNumMessages);
  sender.join();
}

TEST_F(WebSocketLimitsTest, APausedWebSocketCanBeClosed) {
  start();
  RawClient client(server->port());
  open(client);
  record->wait_for_open()->pause_reading();
  client.send(text_frame("unread"));
  record->wait_for_open()->close(1001, "");
  // A message that is on its way already when reading pauses still comes, and is echoed.
  auto frame = read_frame(client);
  const int num_before = frame->code() == 0 ? 1 : 0;
  if (num_before > 0) frame = read_frame(client);
  EXPECT_EQ(frame->code(), 1001);
  client.send(close_frame(1001));
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(record->wait_for_close(), 1001);
  EXPECT_EQ(record->num_messages(), num_before);
}

TEST_F(WebSocketLimitsTest, SilentClientsArePingedAndStay) {
  options.websocket_ping_interval = 50ms;
  start();
  RawClient client(server->port());
  open(client);
  for (int i = 0; i < 6; ++i) {
    const auto ping = read_frame(client);
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->opcode, kPing);
    client.send(ClientFrame{.opcode = kPong, .payload = ping->payload}.bytes());
  }
  expect_echo(client, "still here");
}

TEST_F(WebSocketLimitsTest, AClientThatAnswersNoPingIsGone) {
  options.websocket_ping_interval = 50ms;
  start();
  RawClient client(server->port());
  open(client);
  EXPECT_EQ(read_frame(client)->opcode, kPing);
  EXPECT_EQ(read_frame(client)->opcode, kPing);
  EXPECT_FALSE(read_frame(client).has_value());
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
}

// It cannot be heard, so it is not missed.
TEST_F(WebSocketLimitsTest, APausedClientNeedsToAnswerNoPing) {
  options.websocket_ping_interval = 30ms;
  start();
  RawClient client(server->port());
  open(client);
  record->wait_for_open()->pause_reading();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(read_frame(client)->opcode, kPing);
  EXPECT_FALSE(record->wait_for_open()->is_gone());
}

TEST_F(WebSocketLimitsTest, FragmentsThatNeverEndAreEnded) {
  start();
  const std::string empty = ClientFrame{.opcode = kContinuation, .is_final = false}.bytes();
  std::string frames = ClientFrame{.is_final = false}.bytes();
  for (uint64_t i = 0; i < WebSocketConnection::kMaxFragments; ++i) frames += empty;
  RawClient client(server->port());
  open(client);
  client.send(frames);
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), WebSocketCode::kPolicy);
}

TEST_F(WebSocketLimitsTest, TheMostFragmentsAreTakenAndNotOneMore) {
  start();
  const std::string empty = ClientFrame{.opcode = kContinuation, .is_final = false}.bytes();
  std::string frames = ClientFrame{.payload = "a", .is_final = false}.bytes();
  for (uint64_t i = 0; i < WebSocketConnection::kMaxFragments - 2; ++i) frames += empty;
  const std::string last = ClientFrame{.opcode = kContinuation, .payload = "z"}.bytes();
  RawClient client(server->port());
  open(client);
  client.send(frames + last);
  const auto echo = read_frame(client);
  ASSERT_TRUE(echo.has_value());
  EXPECT_EQ(echo->payload, "az");
  client.send(frames + empty + last);
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), WebSocketCode::kPolicy);
  EXPECT_EQ(record->num_messages(), 1);
}

TEST_F(WebSocketLimitsTest, AMessageThatDripsIsEnded) {
  options.body_timeout = 150ms;
  start();
  RawClient client(server->port());
  open(client);
  client.send(ClientFrame{.payload = "a", .is_final = false}.bytes());
  std::atomic<bool> has_ended = false;
  std::thread drops([&] {
    const std::string next = ClientFrame{.opcode = kContinuation, .payload = "a", .is_final = false}.bytes();
    for (int i = 0; i < 1000 && !has_ended; ++i, std::this_thread::sleep_for(10ms)) client.send(next);
  });
  const auto close = read_frame(client);
  has_ended = true;
  drops.join();
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), WebSocketCode::kPolicy);
}

// Its bytes so far would earn it a minute.
TEST_F(WebSocketLimitsTest, AMessageThatPausesIsEnded) {
  options.body_timeout = 150ms;
  start();
  RawClient client(server->port());
  open(client);
  client.send(ClientFrame{.payload = std::string(60 << 10, 'a'), .is_final = false}.bytes());
  const auto begin = std::chrono::steady_clock::now();
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), WebSocketCode::kPolicy);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

// Slowly, but with more than 1 KiB/s and no pause.
TEST_F(WebSocketLimitsTest, ALongMessageIsWaitedFor) {
  options.body_timeout = 600ms;
  start();
  RawClient client(server->port());
  open(client);
  const std::string part(2 << 10, 'a');
  client.send(ClientFrame{.payload = part, .is_final = false}.bytes());
  for (int i = 0; i < 12; ++i) {
    std::this_thread::sleep_for(100ms);
    client.send(ClientFrame{.opcode = kContinuation, .payload = part, .is_final = i == 11}.bytes());
  }
  const auto echo = read_frame(client);
  ASSERT_TRUE(echo.has_value());
  EXPECT_EQ(echo->payload.size(), 13 * part.size());
}

// ---- The server's end, and its bounds

TEST_F(WebSocketLimitsTest, DrainingTellsTheHandlerAndWaitsForIt) {
  is_silent = true;
  start();
  RawClient client(server->port());
  open(client);
  const auto socket = record->wait_for_open();
  server->drain();
  server->drain();
  EXPECT_FALSE(server->wait_until_answered(50ms));
  EXPECT_EQ(record->num_drains(), 1);
  socket->send("what is owed", true);
  socket->close(WebSocketCode::kGoingAway, "");
  EXPECT_EQ(read_frame(client)->payload, "what is owed");
  EXPECT_EQ(read_frame(client)->code(), 1001);
  client.send(close_frame(1001));
  EXPECT_TRUE(server->wait_until_answered(10s));
  EXPECT_EQ(record->wait_for_close(), 1001);
}

TEST_F(WebSocketLimitsTest, OneThatOpensWhileTheServerDrainsIsToldAtOnce) {
  start();
  RawClient client(server->port());
  RawClient probe(server->port());
  EXPECT_EQ(probe.ask(get_request("/")).status, 200);
  server->drain();
  open(client);
  EXPECT_EQ(read_frame(client)->code(), 1001);
}

TEST_F(WebSocketLimitsTest, StoppingEndsAllOfThem) {
  is_silent = true;
  start();
  RawClient reading(server->port());
  RawClient paused(server->port());
  open(paused);
  const auto first = record->wait_for_open();
  first->pause_reading();
  open(reading);
  EXPECT_TRUE(becomes_true([&] { return record->wait_for_open() != first; }));
  const auto socket = record->wait_for_open();
  std::thread sender([&] {
    while (!socket->is_gone()) socket->send("x", true);
  });
  const auto begin = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  sender.join();
  EXPECT_EQ(service.wait_for_done(2)[1].status, 101);
  EXPECT_EQ(record->num_closes(), 2);
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
  socket->send("behind the end", true);
}

TEST_F(WebSocketLimitsTest, OpenOnesCountAsConnections) {
  options.max_connections = 1;
  start();
  RawClient client(server->port());
  open(client);
  EXPECT_EQ(RawClient(server->port()).ask(get_request("/")).status, 503);
  client.close();
  EXPECT_TRUE(becomes_true([&] { return RawClient(server->port()).ask(get_request("/")).status == 200; }));
}

}  // namespace
}  // namespace transept

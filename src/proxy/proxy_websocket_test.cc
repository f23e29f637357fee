// WebSockets of instances through a proxy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/sanitized_testing.h"
#include "net/fake_http_server_testing.h"
#include "net/websocket_testing.h"
#include "proxy/proxy_testing.h"

namespace transept::testing {
namespace {

using ::testing::HasSubstr;

// A decode instance whose /v1/realtime greets and says everything again.
struct Echo : Upstream {
  explicit Echo(std::string name, bool greets = false) : Upstream(std::move(name)) {
    service.decide = [this, greets](const HttpRequest& request) {
      HttpService::Decision decision{.max_body_bytes = 1 << 20};
      if (request.path != "/v1/realtime") return decision;
      if (refusal.has_value()) {
        decision.refusal = refusal;
        return decision;
      }
      seen.add(request.method + " " + request.query, true);
      for (const auto& [header, value] : request.headers) seen.add(str_cat(header, ": ", value), true);
      auto handler = std::make_unique<EchoHandler>(record);
      if (greets) handler->greeting = "hello";
      decision.upgrade =
          WebSocketUpgrade{.subprotocol = "realtime", .max_message_bytes = 1 << 20, .handler = std::move(handler)};
      return decision;
    };
  }

  std::optional<HttpResponse> refusal;
  SocketRecord seen;  // what its heads had
  const std::shared_ptr<SocketRecord> record = std::make_shared<SocketRecord>();
};

std::string realtime(std::string_view more = "") {
  return get_request("/v1/realtime?intent=transcription&x=%41",
                     std::string(kHandshakeHeaders).append("Sec-WebSocket-Protocol: realtime\r\n").append(more));
}

class ProxyWebSocketTest : public ProxyTest {
 protected:
  std::string open(RawClient& client, std::string_view behind = "") {
    EXPECT_TRUE(client.send(realtime("Authorization: Bearer k\r\nX-Request-Id: mine\r\n").append(behind)));
    return client.read_until("\r\n\r\n");
  }
  static void expect_echo(RawClient& client, const std::string& text) {
    client.send(text_frame(text));
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->payload, text);
  }
  void wait_for_none_open() {
    EXPECT_TRUE(becomes_true([&] { return service_->counts().num_websockets == 0; }));
  }
};

TEST_F(ProxyWebSocketTest, BytesGoBothWaysAsTheyAre) {
  Echo instance("p0", true);
  start({&instance});
  RawClient client(server_->port());
  // A frame behind the head must not be lost, nor the instance's behind its own.
  const std::string head = open(client, text_frame("early"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  for (const std::string_view line :
       {kHandshakeAccept, std::string_view("Upgrade: websocket"), std::string_view("Connection: upgrade"),
        std::string_view("X-Request-Id: mine"), std::string_view("Sec-WebSocket-Protocol: realtime")}) {
    EXPECT_THAT(head, HasSubstr("\r\n" + std::string(line) + "\r\n"));
  }
  EXPECT_EQ(read_frame(client).value().payload, "hello");
  EXPECT_EQ(read_frame(client).value().payload, "early");
  expect_echo(client, "later");
  std::string all_bytes;
  for (int i = 0; i < 300'000; ++i) all_bytes.push_back(static_cast<char>(i * 7 + i / 256));
  client.send(ClientFrame{.opcode = kBinary, .payload = all_bytes}.bytes());
  EXPECT_EQ(read_frame(client).value().payload, all_bytes);
  EXPECT_EQ(service_->counts().num_websockets, 1);
  client.send(close_frame(1000, "bye"));
  EXPECT_EQ(read_frame(client).value().code(), 1000);
  bool ended_well = false;
  EXPECT_EQ(client.read_all(&ended_well), "");
  EXPECT_TRUE(ended_well);
  EXPECT_EQ(instance.record->wait_for_close(), 1000);
  wait_for_none_open();
  EXPECT_EQ(service_->counts().num_opened_websockets, 1);
  EXPECT_EQ(service_->counts().num_answered, 1);
  EXPECT_EQ(service_->counts().num_failed, 0);
}

TEST_F(ProxyWebSocketTest, TheInstanceSeesTheClientsHandshake) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  open(client);
  const auto seen = instance.seen.wait_for_messages(9);
  std::vector<std::string> lines;
  lines.reserve(seen.size());
  for (const auto& line : seen) lines.push_back(line.bytes);
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(
                         "GET intent=transcription&x=%41", "Host: a", "Connection: Upgrade", "Upgrade: websocket",
                         "Sec-WebSocket-Version: 13",
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: realtime",
                         "Authorization: Bearer k", "X-Request-Id: mine", "X-Forwarded-For: 127.0.0.1"));
}

TEST_F(ProxyWebSocketTest, HandshakesThatAreNoneDoNotReachAnInstance) {
  Echo instance("p0");
  start({&instance});
  const auto ask = [&](const std::string& bytes) {
    RawClient client(server_->port());
    client.send(bytes);
    auto response = client.read_response();
    EXPECT_EQ(client.read_all(), "") << "the connection ends";
    return response;
  };
  const auto none = ask(get_request("/v1/realtime"));
  EXPECT_EQ(none.status, 426);
  EXPECT_TRUE(none.has("Sec-WebSocket-Version: 13"));
  std::string without_key = realtime();
  without_key.replace(without_key.find("Sec-WebSocket-Key"), 17, "X-WebSocket-Other");
  EXPECT_EQ(ask(without_key).status, 400);
  std::string old = realtime();
  old.replace(old.find("Version: 13"), 11, "Version: 12");
  EXPECT_EQ(ask(old).status, 426);
  EXPECT_EQ(ask(realtime("Content-Length: 3\r\n") + "abc").status, 400);
  std::string http10 = realtime();
  http10.replace(http10.find("HTTP/1.1"), 8, "HTTP/1.0");
  EXPECT_EQ(ask(http10).status, 505);
  EXPECT_EQ(instance.seen.num_messages(), 0U);
  EXPECT_EQ(service_->counts().num_forwarded, 0);
}

// Frames behind a refused handshake must not be read as requests, by the proxy or by the instance.
TEST_F(ProxyWebSocketTest, ARefusalOfTheInstanceEndsTheConnection) {
  Echo instance("p0");
  instance.refusal = text_response(401, "no key");
  start({&instance});
  RawClient client(server_->port());
  client.send(realtime() + get_request("/smuggled"));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.body, "no key");
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(service_->counts().num_forwarded, 1);
  wait_for_none_open();
}

TEST_F(ProxyWebSocketTest, AnotherInstanceIsAskedIfOneIsFullWhichIsWellAllTheSame) {
  Echo full("p0"), there("p1");
  full.refusal = text_response(503, "64 live sessions");
  start({&full, &there});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    EXPECT_TRUE(open(*clients.back()).starts_with("HTTP/1.1 101 ")) << i;
  }
  EXPECT_GT(service_->counts().num_again, 0);
  EXPECT_EQ(pool_.states(SteadyClock().now()).num_ready, 2);
  there.refusal = full.refusal;
  RawClient last(server_->port());
  last.send(realtime());
  const auto response = last.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "64 live sessions") << "what the instance says";
}

TEST_F(ProxyWebSocketTest, OpenOnesCountAsRequestsOfTheirInstances) {
  Echo one("p0"), other("p1");
  start({&one, &other});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    open(*clients.back());
  }
  EXPECT_EQ(one.seen.num_messages(), other.seen.num_messages());
}

TEST_F(ProxyWebSocketTest, MoreThanMaxWebSocketsAreRefused) {
  Echo instance("p0");
  options_.max_websockets = 1;
  start({&instance});
  RawClient first(server_->port());
  open(first);
  RawClient second(server_->port());
  second.send(realtime());
  const auto response = second.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.has("Retry-After: 1"));
  EXPECT_THAT(response.body, HasSubstr("1 WebSockets are open; at most 1 may be"));
  expect_echo(first, "not disturbed");
  first.close();
  wait_for_none_open();
  RawClient third(server_->port());
  EXPECT_TRUE(open(third).starts_with("HTTP/1.1 101 "));
}

TEST_F(ProxyWebSocketTest, AnInstanceThatSaysNothingHasGone) {
  Echo instance("p0");
  options_.max_silence = 300ms;
  start({&instance});
  RawClient client(server_->port());
  open(client);
  for (int i = 0; i < 5; ++i) {  // longer than that in all
    std::this_thread::sleep_for(100ms);
    expect_echo(client, "x");
  }
  const auto begin = SteadyClock().now();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_GE(SteadyClock().now() - begin, 250ms);
  EXPECT_EQ(instance.record->wait_for_close(), WebSocketCode::kBroken);
  wait_for_none_open();
}

TEST_F(ProxyWebSocketTest, AClientThatReadsNothingIsDropped) {
  Echo instance("p0");
  http_.write_timeout = 200ms;
  start({&instance});
  RawClient client(server_->port(), 4096);
  open(client);
  instance.record->wait_for_open()->send(std::string(32 << 20, 'x'), false);
  EXPECT_EQ(instance.record->wait_for_close(), WebSocketCode::kBroken);
  wait_for_none_open();
}

// The server stops reading audio that it has not heard yet, for as long as that takes.
TEST_F(ProxyWebSocketTest, AnInstanceThatDoesNotReadStopsTheClient) {
  Echo instance("p0");
  http_.write_timeout = 1s;
  start({&instance});
  RawClient client(server_->port());
  open(client);
  const auto socket = instance.record->wait_for_open();
  socket->pause_reading();
  constexpr size_t kNumMessages = 1000;
  std::atomic<bool> is_sent = false;
  std::thread sender([&] {
    const std::string message = ClientFrame{.opcode = kBinary, .payload = std::string(64 << 10, 'a')}.bytes();
    for (size_t i = 0; i < kNumMessages; ++i) client.send(message);
    is_sent = true;
  });
  std::this_thread::sleep_for(2s);
  EXPECT_FALSE(is_sent) << "somebody holds 64 MB";
  EXPECT_LE(instance.record->num_messages(), 1U);
  socket->resume_reading();
  size_t num_read = 0;
  for (; num_read < kNumMessages; ++num_read) {
    const auto frame = read_frame(client);
    if (!frame.has_value() || frame->payload.size() != 64U << 10) break;
  }
  EXPECT_EQ(num_read, kNumMessages);
  if (num_read < kNumMessages) instance.record->wait_for_open()->close(1001, "");  // so that the sender ends
  sender.join();
}

TEST_F(ProxyWebSocketTest, ASideThatGoesTakesTheOtherOneAlong) {
  auto instance = std::make_unique<Echo>("p0");
  start({instance.get()});
  {
    RawClient client(server_->port());
    open(client);
    expect_echo(client, "here");
  }
  EXPECT_EQ(instance->record->wait_for_close(), WebSocketCode::kBroken);
  wait_for_none_open();
  RawClient client(server_->port());
  open(client);
  instance->server->stop();
  EXPECT_EQ(client.read_all(), "");
  wait_for_none_open();
}

// Whether its end is read before the tunnel begins or by the tunnel differs from one to the next.
TEST_F(ProxyWebSocketTest, AClientThatLeavesWithTheHandshakesLastByteIsGoneForTheInstance) {
  Echo instance("p0");
  start({&instance});
  for (int i = 1; i <= 200; ++i) {
    {
      RawClient client(server_->port());
      open(client);
    }
    ASSERT_TRUE(becomes_true([&] { return instance.record->num_closes() == i; })) << i;
    wait_for_none_open();
  }
}

TEST_F(ProxyWebSocketTest, DrainingWaitsForOpenOnes) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  open(client);
  service_->drain();
  server_->drain();
  expect_echo(client, "still here");
  RawClient late(server_->port());
  late.send(realtime());
  EXPECT_EQ(late.read_response().status, 503);
  EXPECT_FALSE(server_->wait_until_answered(50ms));
  client.send(close_frame(1000));
  EXPECT_EQ(read_frame(client).value().code(), 1000);
  EXPECT_TRUE(server_->wait_until_answered(5s));
}

TEST_F(ProxyWebSocketTest, StoppingEndsOpenOnes) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  open(client);
  server_->stop();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(instance.record->wait_for_close(), WebSocketCode::kBroken);
  wait_for_none_open();  // the thread that opened it lets go of it, too
}

// An instance that is stopped, say: its system still has the connection.
TEST_F(ProxyWebSocketTest, AnInstanceThatDoesNotEndIsNotWaitedFor) {
  FakeHttpServer silent([](FakeHttpServer::Connection& connection) {
    (void)connection.read_request();
    connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    std::this_thread::sleep_for(3s);
  });
  Upstream instance("p0");
  instance.record.url = "http://127.0.0.1:" + std::to_string(silent.port());
  options_.max_half_open = 100ms;
  start({&instance});
  RawClient client(server_->port());
  EXPECT_TRUE(open(client).starts_with("HTTP/1.1 101 "));
  const auto begin = SteadyClock().now();
  client.end_sending();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_LT(SteadyClock().now() - begin, 2s);
  wait_for_none_open();
}

// Bytes that wait for the client are no silence of the instance.
TEST_F(ProxyWebSocketTest, AClientMayReadLaterThanTheInstanceMayBeSilent) {
  Echo instance("p0");
  options_.max_silence = kSanitized ? 1200ms : 300ms;  // in which an instance that is slower sends something
  start({&instance});
  RawClient client(server_->port(), 4096);
  open(client);
  const std::string message(24 << 20, 'x');
  instance.record->wait_for_open()->send(message, false);
  std::this_thread::sleep_for(3 * options_.max_silence);
  const auto frame = read_frame(client);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload.size(), message.size());
}

// Else the close frame may be lost to a reset.
TEST_F(ProxyWebSocketTest, WhatComesBehindTheEndIsReadAway) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  open(client);
  client.send(close_frame(1000));
  EXPECT_EQ(read_frame(client).value().code(), 1000);
  EXPECT_EQ(client.read_all(), "");
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(client.send("more")) << i;
  }
}

TEST_F(ProxyWebSocketTest, AnAnswerOtherThanAWebSocketIsPassedOn) {
  Upstream instance("p0");  // answers as to any request
  start({&instance});
  RawClient client(server_->port());
  client.send(realtime());
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "GET /v1/realtime?intent=transcription&x=%41 ");
  EXPECT_EQ(client.read_all(), "") << "the connection ends";
}

TEST_F(ProxyWebSocketTest, OtherPathsAreForwardedAsRequests) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  client.send(get_request("/x", kHandshakeHeaders));
  EXPECT_EQ(client.read_response().body, "GET /x? ");
  client.send(post_request("/v1/realtime", "b"));
  EXPECT_EQ(client.read_response().status, 405) << "of the instance, whose path it is";
  EXPECT_EQ(service_->counts().num_forwarded, 2);
}

TEST_F(ProxyWebSocketTest, MetricsHaveThem) {
  Echo instance("p0");
  start({&instance});
  RawClient client(server_->port());
  open(client);
  const auto metrics = this->client().get("/metrics");
  EXPECT_THAT(metrics->body, HasSubstr("\ntransept_proxy_websockets 1\n"));
  EXPECT_THAT(metrics->body, HasSubstr("\ntransept_proxy_websockets_total 1\n"));
}

}  // namespace
}  // namespace transept::testing

// WebSockets of a running server, by a client that sends bytes as it is told: handshakes and frames right and wrong,
// and HTTP beside them. websocket_limits_test.cc has what the server sends, its deadlines and bounds.
#include "net/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "net/websocket_connection.h"
#include "net/websocket_testing.h"

namespace transept {
namespace {

using testing::ClientFrame;
using testing::close_frame;
using testing::close_payload;
using testing::handshake;
using ::testing::HasSubstr;
using testing::kBinary;
using testing::kClose;
using testing::kContinuation;
using testing::kPing;
using testing::kPong;
using ::testing::Not;
using testing::read_frame;
using testing::SocketRecord;
using testing::text_frame;
using Message = SocketRecord::Message;

using WebSocketServerTest = testing::WebSocketTest;

TEST_F(WebSocketServerTest, OpensEchoesAndCloses) {
  subprotocol = "chat";
  start();
  RawClient client(server->port());
  client.send(
      handshake("Sec-WebSocket-Protocol: x, chat\r\nX-Request-Id: mine\r\n"
                "Sec-WebSocket-Extensions: permessage-deflate\r\n"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  for (const std::string_view line :
       {testing::kHandshakeAccept, std::string_view("Upgrade: websocket"),
        std::string_view("Sec-WebSocket-Protocol: chat"), std::string_view("X-Request-Id: mine")}) {
    EXPECT_THAT(head, HasSubstr("\r\n" + std::string(line) + "\r\n"));
  }
  EXPECT_THAT(head, Not(HasSubstr("Extensions")));
  EXPECT_THAT(head, Not(HasSubstr("Beast")));
  expect_echo(client, "hello");
  client.send(ClientFrame{.opcode = kBinary, .payload = std::string("\xff\x00", 2)}.bytes());
  const auto binary = read_frame(client);
  ASSERT_TRUE(binary.has_value());
  EXPECT_EQ(binary->opcode, kBinary);
  EXPECT_EQ(binary->payload, std::string("\xff\x00", 2));
  EXPECT_FALSE(binary->is_masked);
  client.send(close_frame(4321, "bye"));
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), 4321);
  bool ended_well = false;
  client.end_sending();
  EXPECT_EQ(client.read_all(&ended_well), "");
  EXPECT_TRUE(ended_well);
  EXPECT_EQ(record->wait_for_close(), 4321);
  EXPECT_EQ(record->num_closes(), 1);
  const auto done = service.wait_for_done(1);
  EXPECT_EQ(done[0].status, 101);
  EXPECT_EQ(done[0].request.path, "/socket");
  EXPECT_EQ(done[0].request.request_id, "mine");
  EXPECT_EQ(done[0].bytes_sent, head.size() + 7 + 4 + 4);  // frames of 5, 2 and 2 bytes
  EXPECT_TRUE(becomes_true([&] { return server->num_connections() == 0; }));
}

// A frame that came in one piece with the head is the first that the handler sees, however much of it came so.
TEST_F(WebSocketServerTest, BytesBehindTheHeadAreNotLost) {
  start();
  const std::string large(20000, 'x');
  const std::string frames = text_frame("first") + text_frame(large) + text_frame("last");
  const std::string all = handshake() + frames;
  for (const size_t cut : {all.size(), handshake().size() + 1, handshake().size() + 7, handshake().size() + 2000,
                           handshake().size() + 15000, all.size() - 1}) {
    RawClient client(server->port());
    client.send(all.substr(0, cut));
    EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
    client.send(all.substr(cut));
    for (const std::string& text : {std::string("first"), large, std::string("last")}) {
      const auto frame = read_frame(client);
      ASSERT_TRUE(frame.has_value()) << cut;
      EXPECT_EQ(frame->payload, text) << cut;
    }
  }
}

TEST_F(WebSocketServerTest, MessagesOfEveryLengthAndInFragments) {
  start();
  RawClient client(server->port());
  open(client);
  for (const size_t size : {0, 1, 125, 126, 127, 65535, 65536, 300000}) expect_echo(client, std::string(size, 'a'));
  // A character over three frames, a ping in between, and frames of no bytes.
  client.send(ClientFrame{.payload = "a\xe2", .is_final = false}.bytes());
  client.send(ClientFrame{.opcode = kContinuation, .is_final = false}.bytes());
  client.send(ClientFrame{.opcode = kPing, .payload = "p"}.bytes());
  client.send(ClientFrame{.opcode = kContinuation, .payload = "\x82", .is_final = false}.bytes());
  client.send(ClientFrame{.opcode = kContinuation, .payload = "\xac"}.bytes());
  const auto pong = read_frame(client);
  ASSERT_TRUE(pong.has_value());
  EXPECT_EQ(pong->opcode, kPong);
  EXPECT_EQ(pong->payload, "p");
  const auto echo = read_frame(client);
  ASSERT_TRUE(echo.has_value());
  EXPECT_EQ(echo->payload, "a\u20ac");
  EXPECT_EQ(record->wait_for_messages(9).back(), (Message{"a\u20ac", true}));
}

TEST_F(WebSocketServerTest, WrongFramesCloseWithTheirCode) {
  max_message_bytes = 1000;
  start();
  const auto fragment = [](std::string payload) {
    return ClientFrame{.payload = std::move(payload), .is_final = false};
  };
  const auto rest = [](std::string payload, bool is_final = true) {
    return ClientFrame{.opcode = kContinuation, .payload = std::move(payload), .is_final = is_final}.bytes();
  };
  struct Case {
    std::string what, frames;
    int code;
  };
  std::vector<Case> cases = {
      {"not masked", ClientFrame{.payload = "a", .is_masked = false}.bytes(), 1002},
      {"not masked, of no bytes", ClientFrame{.is_masked = false}.bytes(), 1002},
      {"a control frame in fragments", ClientFrame{.opcode = kPing, .is_final = false}.bytes(), 1002},
      {"a ping of 126", ClientFrame{.opcode = kPing, .payload = std::string(126, 'x')}.bytes(), 1002},
      {"a pong of 126", ClientFrame{.opcode = kPong, .payload = std::string(126, 'x')}.bytes(), 1002},
      {"a close of 126", ClientFrame{.opcode = kClose, .payload = close_payload(1000, std::string(124, 'x'))}.bytes(),
       1002},
      {"a continuation of nothing", rest("a"), 1002},
      {"a message within another", fragment("a").bytes() + text_frame("b"), 1002},
      {"no UTF-8", text_frame("\xff"), 1007},
      {"half a character", text_frame("a\xe2\x82"), 1007},
      {"half a character, and no bytes behind it", fragment("a\xe2\x82").bytes() + rest(""), 1007},
      {"three bytes of four, and no bytes behind them", fragment("\xf0\x9f\x98").bytes() + rest(""), 1007},
      {"half a character, and another", fragment("\xe2").bytes() + rest("a"), 1007},
      {"a surrogate", text_frame("\xed\xa0\x80"), 1007},
      {"a character in too many bytes", text_frame("\xc0\x80"), 1007},
      {"above U+10FFFF", text_frame("\xf4\x90\x80\x80"), 1007},
      {"a byte too many", text_frame(std::string(1001, 'x')), 1009},
      {"a byte too many in fragments", fragment(std::string(600, 'x')).bytes() + rest(std::string(401, 'x')), 1009},
      {"a length that does not fit", ClientFrame{.announced = uint64_t{1} << 63}.bytes(), 1009},
      {"a length of 2^64 - 1 behind a byte",
       fragment("x").bytes() + ClientFrame{.opcode = kContinuation, .announced = ~uint64_t{0}}.bytes(), 1009},
      {"a close of one byte", ClientFrame{.opcode = kClose, .payload = "x"}.bytes(), 1002},
      {"a close whose reason is no UTF-8", close_frame(1000, "\xff"), 1002},
      {"a close without a code", ClientFrame{.opcode = kClose}.bytes(), 1000},
  };
  for (const uint8_t bit : std::initializer_list<uint8_t>{0x10, 0x20, 0x40}) {
    cases.push_back({"a reserved bit", ClientFrame{.payload = "a", .reserved_bits = bit}.bytes(), 1002});
  }
  for (const uint8_t opcode : std::initializer_list<uint8_t>{3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    cases.push_back({"a reserved opcode", ClientFrame{.opcode = opcode, .payload = "a"}.bytes(), 1002});
  }
  for (const uint16_t code : std::initializer_list<uint16_t>{0, 999, 1004, 1005, 1006, 1015, 1016, 2999}) {
    cases.push_back({"a code that may not be sent", close_frame(code), 1002});
  }
  for (const uint16_t code : std::initializer_list<uint16_t>{1000, 1001, 1003, 1007, 1011, 3000, 4999}) {
    cases.push_back({"a code that may be sent", close_frame(code), code});
  }
  for (const Case& wrong : cases) EXPECT_EQ(code_after(wrong.frames), wrong.code) << wrong.what;
  EXPECT_EQ(record->num_messages(), 0);
}

TEST_F(WebSocketServerTest, AMessageOfTheLargestSizeIsTaken) {
  max_message_bytes = 1000;
  start();
  RawClient client(server->port());
  open(client);
  expect_echo(client, std::string(1000, 'x'));
  client.send(ClientFrame{.payload = std::string(600, 'x'), .is_final = false}.bytes());
  client.send(ClientFrame{.opcode = kContinuation, .payload = std::string(400, 'y')}.bytes());
  EXPECT_EQ(record->wait_for_messages(2).back().bytes.size(), 1000);
}

// A connection that closes over unread bytes is reset, and its close frame can be lost.
TEST_F(WebSocketServerTest, ACloseFrameIsNotLostOverWhatIsUnread) {
  start();
  RawClient client(server->port());
  open(client);
  client.send(ClientFrame{.is_masked = false}.bytes() + std::string(1 << 20, 'x'));
  const auto close = read_frame(client);
  ASSERT_TRUE(close.has_value());
  EXPECT_EQ(close->code(), 1002);
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(client.send("more"));
}

// Each test's handler is told the code of each of these ends once.
TEST_F(WebSocketServerTest, TheHandlerIsToldTheCode) {
  const auto code_told = [this](const std::string& frames) {
    RawClient client(server->port());
    open(client);
    client.send(frames);
    while (read_frame(client).has_value()) {
    }
    return record->wait_for_close();
  };
  start();
  EXPECT_EQ(code_told(ClientFrame{.opcode = kClose}.bytes()), WebSocketCode::kNone);
}
TEST_F(WebSocketServerTest, TheHandlerIsToldOfAProtocolError) {
  start();
  EXPECT_EQ(code_after(ClientFrame{.is_masked = false}.bytes()), 1002);
  EXPECT_EQ(record->wait_for_close(), 1002);
}
TEST_F(WebSocketServerTest, TheHandlerIsToldThatTheClientIsGone) {
  start();
  RawClient client(server->port());
  open(client);
  client.send(ClientFrame{.payload = "half", .is_final = false}.bytes());
  client.close();
  EXPECT_EQ(record->wait_for_close(), WebSocketCode::kBroken);
  EXPECT_TRUE(record->wait_for_open()->is_gone());
  EXPECT_EQ(service.wait_for_done(1)[0].status, 101);
}

TEST_F(WebSocketServerTest, AHandlerThatThrowsEndsItsWebSocketAlone) {
  start();
  RawClient other(server->port());
  std::string frames = text_frame("throw");
  for (int i = 0; i < 20; ++i) frames += text_frame("behind");
  EXPECT_EQ(code_after(frames), WebSocketCode::kInternal);
  EXPECT_EQ(record->num_messages(), 0);
  EXPECT_EQ(other.ask(get_request("/")).status, 200);
}

// ---- Handshakes

TEST_F(WebSocketServerTest, WrongHandshakesAreAnsweredAndEndTheConnection) {
  start();
  const std::string headers(testing::kHandshakeHeaders);
  const std::string good = handshake();
  const auto replaced = [&](std::string_view what, std::string_view with) {
    std::string bytes = good;
    return bytes.replace(bytes.find(what), what.size(), with);
  };
  const std::pair<std::string, int> cases[] = {
      {get_request("/socket"), 426},
      {replaced("Version: 13", "Version: 8"), 426},
      {replaced("dGhlIHNhbXBsZSBub25jZQ==", "short"), 400},
      {replaced("GET", "POST"), 405},
      {replaced("HTTP/1.1", "HTTP/1.0"), 505},
      {post_request("/socket", "abc", headers).replace(0, 4, "GET"), 400},
      {handshake("Upgrade: h2c\r\n"), 400},
      {handshake("Sec-WebSocket-Protocol: a b\r\n"), 400},
      {handshake("Sec-WebSocket-Protocol: " + std::string(8 << 10, 'x') + "\r\n"), 431},
  };
  size_t num_done = 0;
  for (const auto& [bytes, status] : cases) {
    RawClient client(server->port());
    client.send(bytes + text_frame("GET / HTTP/1.1") + get_request("/smuggled"));
    const auto response = client.read_response();
    EXPECT_EQ(response.status, status) << bytes;
    EXPECT_FALSE(response.body.empty());
    EXPECT_THAT(response.head, HasSubstr("close\r\n"));
    if (status == 426) {
      EXPECT_TRUE(response.has("Sec-WebSocket-Version: 13")) << response.head;
      EXPECT_TRUE(response.has("Upgrade: websocket")) << response.head;
      EXPECT_TRUE(response.has("Connection: upgrade, close")) << response.head;
    }
    EXPECT_EQ(client.read_all(), "");
    EXPECT_EQ(service.wait_for_done(++num_done).back().status, status);
  }
  EXPECT_EQ(service.wait_for_done(num_done).size(), num_done);
}

TEST_F(WebSocketServerTest, HttpBesideItIsUnchanged) {
  start();
  RawClient client(server->port());
  EXPECT_EQ(client.ask(get_request("/a")).body, "GET /a? ");
  // Of a path that is none of a WebSocket, the wish for one is passed over.
  EXPECT_EQ(client.ask(get_request("/b", testing::kHandshakeHeaders)).body, "GET /b? ");
  EXPECT_EQ(client.ask(post_request("/c", "abc", testing::kHandshakeHeaders)).body, "POST /c? abc");
  // A connection that was used before, requests and a handshake in one piece.
  client.send(get_request("/d") + handshake() + text_frame("hello"));
  EXPECT_EQ(client.read_response().body, "GET /d? ");
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
  const auto frame = read_frame(client);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload, "hello");
}

TEST_F(WebSocketServerTest, ARefusalComesBeforeTheHandshake) {
  const auto decide = service.decide;
  service.decide = [&](const HttpRequest& request) {
    HttpService::Decision decision = decide(request);
    decision.refusal = text_response(403, "no");
    return decision;
  };
  start();
  RawClient client(server->port());
  EXPECT_EQ(client.ask(handshake()).status, 403);
  EXPECT_EQ(client.ask(get_request("/socket")).status, 403);
}

}  // namespace
}  // namespace transept

#include "net/websocket_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HttpHead good_head() {
  HttpHead head;
  head.request.method = "GET";
  head.request.headers = {{"Host", "a"},
                          {"connection", "keep-alive, UPGRADE"},
                          {"upgrade", "WebSocket"},
                          {"sec-websocket-version", "13"},
                          {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  return head;
}

HttpHead with(std::string_view name, std::initializer_list<std::string> values) {
  HttpHead head = good_head();
  std::erase_if(head.request.headers, [&](const auto& header) { return find_header({header}, name) != nullptr; });
  for (const std::string& value : values) head.request.headers.emplace_back(name, value);
  return head;
}

TEST(WebSocketHandshake, TakesWhatTheStandardAllows) {
  EXPECT_FALSE(check_websocket_handshake(good_head()).has_value());
  EXPECT_FALSE(check_websocket_handshake(with("Connection", {"close", "upgrade"})).has_value());
  EXPECT_FALSE(check_websocket_handshake(with("Sec-WebSocket-Protocol", {"a, b", "realtime"})).has_value());
  EXPECT_FALSE(check_websocket_handshake(with("Sec-WebSocket-Extensions", {"permessage-deflate"})).has_value());
}

TEST(WebSocketHandshake, EachWrongOneHasAStatusAndAReason) {
  HttpHead post = good_head(), chunked = good_head(), sized = good_head(), old = good_head(), head = good_head();
  post.request.method = "POST";
  head.request.method = "HEAD";
  chunked.is_chunked = true;
  sized.content_length = 1;
  old.minor_version = 0;
  struct Case {
    HttpHead head;
    int status;
    std::string reason;
  };
  const Case cases[] = {
      {post, 405, "GET"},
      {head, 405, "GET"},
      {chunked, 400, "body"},
      {sized, 400, "body"},
      {old, 505, "HTTP/1.1"},
      {with("Upgrade", {}), 426, "upgrade"},
      {with("Upgrade", {"h2c"}), 426, "upgrade"},
      {with("Upgrade", {"websockets"}), 426, "upgrade"},
      {with("Upgrade", {"websocket", "websocket"}), 400, "more than one protocol"},
      {with("Upgrade", {"h2c, websocket"}), 400, "more than one protocol"},
      {with("Connection", {}), 400, "Connection"},
      {with("Connection", {"keep-alive"}), 400, "Connection"},
      {with("Sec-WebSocket-Version", {}), 426, "13"},
      {with("Sec-WebSocket-Version", {"8"}), 426, "13"},
      {with("Sec-WebSocket-Version", {"13, 8"}), 426, "13"},
      {with("Sec-WebSocket-Version", {"13", "13"}), 400, "more than one Sec-WebSocket-Version"},
      {with("Sec-WebSocket-Key", {}), 400, "missing"},
      {with("Sec-WebSocket-Key", {"dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ=="}), 400, "more than one"},
      {with("Sec-WebSocket-Key", {""}), 400, "16 bytes"},
      {with("Sec-WebSocket-Key", {"dGhlIHNhbXBsZSBub25j"}), 400, "16 bytes"},      // 15
      {with("Sec-WebSocket-Key", {"dGhlIHNhbXBsZSBub25jZSE="}), 400, "16 bytes"},  // 17
      {with("Sec-WebSocket-Key", {"dGhlIHNhbXBsZSBub25jZQ"}), 400, "16 bytes"},    // no padding
      {with("Sec-WebSocket-Key", {"dGhl-HNhbXBsZSBub25jZQ=="}), 400, "16 bytes"},  // another alphabet
      {with("Sec-WebSocket-Protocol", {"a,,b"}), 400, "no list"},
      {with("Sec-WebSocket-Protocol", {""}), 400, "no list"},
      {with("Sec-WebSocket-Protocol", {"a b"}), 400, "no list"},
      {with("Sec-WebSocket-Protocol", {"a", "b, a"}), 400, "twice"},
      {with("Sec-WebSocket-Protocol", {std::string(8 << 10, 'x')}), 431, "4096"},
      {with("Sec-WebSocket-Protocol", {std::string(2048, 'x'), std::string(2049, 'y')}), 431, "4096"},
  };
  for (const auto& [wrong, status, reason] : cases) {
    const auto error = check_websocket_handshake(wrong);
    ASSERT_TRUE(error.has_value()) << reason;
    EXPECT_EQ(error->status, status) << error->reason;
    EXPECT_THAT(error->reason, HasSubstr(reason));
  }
  EXPECT_FALSE(check_websocket_handshake(with("Sec-WebSocket-Protocol", {std::string(4096, 'x')})).has_value());
}

TEST(WebSocketHandshake, AnswersSayWhatWouldBeRight) {
  EXPECT_THAT(handshake_error_headers(426),
              ElementsAre(std::pair("Upgrade", "websocket"), std::pair("Sec-WebSocket-Version", "13")));
  EXPECT_THAT(handshake_error_headers(405), ElementsAre(std::pair("Allow", "GET")));
  EXPECT_TRUE(handshake_error_headers(400).empty());
}

TEST(WebSocketHandshake, TheFirstOfferThatIsServedIsChosen) {
  const HttpHead head = with("Sec-WebSocket-Protocol", {"x, b", "a"});
  EXPECT_THAT(offered_subprotocols(head.request), ElementsAre("x", "b", "a"));
  constexpr std::string_view kServed[] = {"a", "b"}, kOthers[] = {"c", "B"};
  EXPECT_EQ(choose_subprotocol(head.request, kServed), "b");
  EXPECT_EQ(choose_subprotocol(head.request, kOthers), std::nullopt);
  EXPECT_EQ(choose_subprotocol(head.request, {}), std::nullopt);
  EXPECT_EQ(choose_subprotocol(good_head().request, kServed), "");
}

}  // namespace
}  // namespace transept

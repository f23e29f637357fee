// For tests of WebSockets: frames as a client sends them, right or wrong, and frames of the server read from a
// RawClient; a service whose /socket is a WebSocket.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http_server_testing.h"
#include "net/websocket.h"

namespace transept::testing {

inline constexpr uint8_t kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10;

struct ClientFrame {
  uint8_t opcode = kText;
  std::string payload;
  bool is_final = true;
  bool is_masked = true;
  uint8_t reserved_bits = 0;                         // 0x70 are the three
  std::optional<uint64_t> announced = std::nullopt;  // a length that is not the payload's

  std::string bytes() const {
    const uint64_t length = announced.value_or(payload.size());
    const uint8_t mask_bit = is_masked ? 0x80 : 0;
    std::string out;
    const auto put = [&](uint64_t byte) { out.push_back(static_cast<char>(byte)); };
    put((is_final ? 0x80U : 0U) | reserved_bits | opcode);
    const int length_bytes = length < 126 ? 0 : length < 65536 ? 2 : 8;
    put(mask_bit | (length_bytes == 0 ? length : length_bytes == 2 ? 126 : 127));
    for (int i = length_bytes - 1; i >= 0; --i) put(length >> (8 * i) & 0xFF);
    static constexpr std::array<uint8_t, 4> kMask = {0x37, 0xFA, 0x21, 0x3D};  // RFC 6455, 5.7
    if (!is_masked) return out + payload;
    for (const uint8_t byte : kMask) put(byte);
    for (size_t i = 0; i < payload.size(); ++i) put(static_cast<uint8_t>(payload[i]) ^ kMask[i % 4]);
    return out;
  }
};

inline std::string text_frame(std::string text) { return ClientFrame{.payload = std::move(text)}.bytes(); }
inline std::string close_payload(uint16_t code, std::string_view why = "") {
  return std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)}.append(why);
}
inline std::string close_frame(uint16_t code, std::string_view why = "") {
  return ClientFrame{.opcode = kClose, .payload = close_payload(code, why)}.bytes();
}

struct ServerFrame {
  uint8_t opcode = 0;
  std::string payload;
  bool is_final = false, is_masked = false;

  // Of a close frame: 0 if this is none, kNone without a code.
  int code() const {
    if (opcode != kClose || !is_final) return 0;
    if (payload.size() < 2) return WebSocketCode::kNone;
    return static_cast<uint8_t>(payload[0]) << 8 | static_cast<uint8_t>(payload[1]);
  }
};

// nullopt: the connection ended before a whole frame.
inline std::optional<ServerFrame> read_frame(RawClient& client) {
  const auto number = [&](size_t size) -> std::optional<uint64_t> {
    const std::string bytes = client.read_bytes(size);
    if (bytes.size() < size) return std::nullopt;
    uint64_t value = 0;
    for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
    return value;
  };
  const auto head = number(2);
  if (!head.has_value()) return std::nullopt;
  ServerFrame frame;
  frame.is_final = (*head & 0x8000) != 0;
  frame.opcode = static_cast<uint8_t>(*head >> 8 & 0x7F);  // a reserved bit makes it another
  frame.is_masked = (*head & 0x80) != 0;
  uint64_t length = *head & 0x7F;
  if (length >= 126) {
    const auto longer = number(length == 126 ? 2 : 8);
    if (!longer.has_value()) return std::nullopt;
    length = *longer;
  }
  frame.payload = client.read_bytes(length);
  return frame.payload.size() < length ? std::nullopt : std::optional(std::move(frame));
}

// The key and its answer of RFC 6455, 1.3.
inline constexpr std::string_view kHandshakeHeaders =
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
inline constexpr std::string_view kHandshakeAccept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

inline std::string handshake(std::string_view more = "") {
  return get_request("/socket", std::string(kHandshakeHeaders).append(more));
}

// What a handler of a test saw. Thread-safe.
class SocketRecord final {
 public:
  struct Message {
    std::string bytes;
    bool is_text;
    bool operator==(const Message&) const = default;
  };

  void open(std::shared_ptr<WebSocket> socket) {
    change([&] { socket_ = std::move(socket); });
  }
  void add(std::string bytes, bool is_text) {
    change([&] { messages_.push_back({std::move(bytes), is_text}); });
  }
  void drain() {
    change([&] { ++num_drains_; });
  }
  void close(uint16_t code) {
    change([&] {
      code_ = code;
      ++num_closes_;
    });
  }

  std::shared_ptr<WebSocket> wait_for_open() {
    const MutexLock lock(mutex_);
    wait([&] { return socket_ != nullptr; });
    return socket_;
  }
  std::vector<Message> wait_for_messages(size_t count) {
    const MutexLock lock(mutex_);
    wait([&] { return messages_.size() >= count; });
    return messages_;
  }
  int wait_for_close() {
    const MutexLock lock(mutex_);
    wait([&] { return code_ != 0; });
    return code_;
  }
  size_t num_messages() {
    const MutexLock lock(mutex_);
    return messages_.size();
  }
  int num_closes() {
    const MutexLock lock(mutex_);
    return num_closes_;
  }
  int num_drains() {
    const MutexLock lock(mutex_);
    return num_drains_;
  }

 private:
  template <class Change>
  void change(const Change& apply) {
    const MutexLock lock(mutex_);
    apply();
    changed_.notify_all();
  }
  template <class Condition>
  void wait(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!condition() && changed_.wait_until(mutex_, end)) {
    }
    EXPECT_TRUE(condition());
  }

  Mutex mutex_;  // for all below, which lambdas read
  CondVar changed_;
  std::shared_ptr<WebSocket> socket_;
  std::vector<Message> messages_;
  int num_drains_ = 0, num_closes_ = 0, code_ = 0;
};

// Records, and answers each message with itself; closes with kGoingAway when the server drains.
class EchoHandler final : public WebSocketHandler {
 public:
  explicit EchoHandler(std::shared_ptr<SocketRecord> record) : record_(std::move(record)) {}

  void on_open(std::shared_ptr<WebSocket> socket) override {
    socket_ = std::move(socket);
    record_->open(socket_);
    if (!greeting.empty()) socket_->send(greeting, true);
  }
  void on_message(std::string message, bool is_text) override {
    if (is_text && message == "throw") throw std::runtime_error("a test's");
    if (!is_silent) socket_->send(message, is_text);
    record_->add(std::move(message), is_text);
  }
  void on_drain() override {
    record_->drain();
    if (!is_silent) socket_->close(WebSocketCode::kGoingAway, "draining");
  }
  void on_closed(uint16_t code) override { record_->close(code); }

  bool is_silent = false;
  std::string greeting;

 private:
  const std::shared_ptr<SocketRecord> record_;
  std::shared_ptr<WebSocket> socket_;
};

class WebSocketTest : public HttpServerTest {
 protected:
  WebSocketTest() {
    service.decide = [this](const HttpRequest& request) {
      HttpService::Decision decision{.max_body_bytes = 1 << 20};
      if (request.path != "/socket") return decision;
      auto handler = std::make_unique<EchoHandler>(record);
      handler->is_silent = is_silent;
      decision.upgrade = WebSocketUpgrade{
          .subprotocol = subprotocol, .max_message_bytes = max_message_bytes, .handler = std::move(handler)};
      return decision;
    };
  }

  // Sends a handshake and `more` in one piece, and reads the head of the answer.
  std::string open(RawClient& client, std::string_view more = "") {
    EXPECT_TRUE(client.send(handshake().append(more)));
    return client.read_until("\r\n\r\n");
  }
  // The code of the close frame that answers `frames`: 0 if it is not the next frame, -1 if the connection just ended.
  // What is sent behind it must not come to the handler.
  int code_after(const std::string& frames) {
    RawClient client(server->port());
    EXPECT_TRUE(open(client).starts_with("HTTP/1.1 101 "));
    client.send(frames + text_frame("behind"));
    const auto frame = read_frame(client);
    if (!frame.has_value()) return -1;
    client.end_sending();
    EXPECT_EQ(client.read_all(), "");
    return frame->code();
  }

  void expect_echo(RawClient& client, const std::string& text) {
    client.send(text_frame(text));
    const auto frame = read_frame(client);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->opcode, kText);
    EXPECT_EQ(frame->payload, text);
  }

  const std::shared_ptr<SocketRecord> record = std::make_shared<SocketRecord>();
  std::string subprotocol;
  size_t max_message_bytes = 1 << 20;
  bool is_silent = false;
};

}  // namespace transept::testing

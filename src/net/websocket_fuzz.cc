// Any bytes as a connection that asks for a WebSocket: head, what comes with it, frames. However the bytes are cut, the
// handler gets the same messages and the same code, and those that a plain reader of RFC 6455 below finds. The first
// byte says how they are cut, and its highest bit whether a good handshake stands before the others.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "net/http_connection.h"

namespace transept {
namespace {

constexpr size_t kMaxMessageBytes = 300;
constexpr int kNotOpened = 0;
constexpr std::string_view kHandshake =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

void require(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  std::vector<std::pair<std::string, bool>> messages;
  int code = kNotOpened;
  std::vector<int> statuses;  // of on_done
  bool operator==(const Outcome&) const = default;
};

class Handler final : public WebSocketHandler {
 public:
  explicit Handler(Outcome& outcome) : outcome_(outcome) {}
  void on_open(std::shared_ptr<WebSocket> socket) override { socket_ = std::move(socket); }
  void on_message(std::string message, bool is_text) override {
    require(message.size() <= kMaxMessageBytes && outcome_.code == kNotOpened);
    require(!is_text || is_valid_utf8(message));
    socket_->send(message, is_text);
    outcome_.messages.emplace_back(std::move(message), is_text);
  }
  void on_drain() override { std::abort(); }
  void on_closed(uint16_t code) override {
    require(outcome_.code == kNotOpened && code != kNotOpened);
    outcome_.code = code;
  }

 private:
  Outcome& outcome_;
  std::shared_ptr<WebSocket> socket_;
};

class Service final : public HttpService {
 public:
  explicit Service(Outcome& outcome) : outcome_(outcome) {}
  Decision on_head(const HttpRequest&) override {
    Decision decision;
    decision.upgrade =
        WebSocketUpgrade{.max_message_bytes = kMaxMessageBytes, .handler = std::make_unique<Handler>(outcome_)};
    return decision;
  }
  void on_request(HttpRequest, std::shared_ptr<void>, std::shared_ptr<Responder>) override { std::abort(); }
  HttpResponse on_error(int status, const std::string& reason, const std::string&) override {
    return {.status = status, .body = reason};
  }
  void on_done(const HttpRequest&, int status, double, uint64_t) override { outcome_.statuses.push_back(status); }

 private:
  Outcome& outcome_;
};

// Serves the bytes as one connection, to its end.
Outcome serve(std::string_view bytes, size_t piece_bytes) {
  Outcome outcome;
  Service service(outcome);
  boost::asio::io_context io;
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  HttpServerContext context{.options = {}, .service = service};
  bool is_closed = false;
  context.on_closed = [&](const HttpConnection*) { is_closed = true; };
  {
    boost::asio::ip::tcp::socket socket(boost::asio::make_strand(io));
    socket.assign(boost::asio::ip::tcp::v4(), ends[0]);
    std::make_shared<HttpConnection>(std::move(socket), context)->start();
  }
  const auto let_it_work = [&] {
    char answer[4096];
    while (io.poll() > 0 || ::recv(ends[1], answer, sizeof answer, 0) > 0) {
    }
  };
  let_it_work();
  while (!bytes.empty() && !is_closed) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    if (::send(ends[1], piece.data(), piece.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(piece.size())) break;
    bytes.remove_prefix(piece.size());
    let_it_work();
  }
  ::shutdown(ends[1], SHUT_WR);
  let_it_work();
  ::close(ends[1]);
  io.run();
  require(is_closed);
  return outcome;
}

// What RFC 6455 makes of frames; where the end comes before a wrong text is whole, either code will do.
class PlainReader final {
 public:
  explicit PlainReader(std::string_view bytes) : bytes_(bytes) {
    while (code == kNotOpened) read_frame();
  }
  std::vector<std::pair<std::string, bool>> messages;
  int code = kNotOpened, other_code = kNotOpened;

 private:
  void end(int why) {
    code = why;
    other_code = is_text_ && is_in_message_ && !is_valid_utf8(message_) ? int{WebSocketCode::kBadText} : why;
  }
  // False: the bytes end here.
  bool take(size_t count, std::string& taken) {
    taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken.size() == count;
  }
  static uint64_t number(std::string_view digits) {
    uint64_t value = 0;
    for (const char digit : digits) value = value << 8 | static_cast<uint8_t>(digit);
    return value;
  }

  void read_frame() {
    std::string head, digits, mask, payload;
    if (!take(2, head)) return end(WebSocketCode::kBroken);
    const auto first = static_cast<uint8_t>(head[0]), second = static_cast<uint8_t>(head[1]);
    const int opcode = first & 0xF;
    const bool is_final = (first & 0x80) != 0, is_control = opcode >= 8;
    uint64_t length = second & 0x7F;
    const size_t num_digits = length == 126 ? 2 : length == 127 ? 8 : 0;
    const bool has_mask = (second & 0x80) != 0;
    const bool has_header = take(num_digits, digits) && (!has_mask || take(4, mask));
    const bool is_expected = opcode == 0 ? is_in_message_ : opcode <= 2 && !is_in_message_;
    const bool is_wrong =
        (first & 0x70) != 0 || !has_mask || (is_control ? opcode > 10 || !is_final || length > 125 : !is_expected);
    if (num_digits > 0) length = number(digits);
    const bool is_longer_than_said = (num_digits == 2 && length < 126) || (num_digits == 8 && length < 65536);
    if (!has_header) {
      end(WebSocketCode::kBroken);
      if (is_wrong) other_code = WebSocketCode::kProtocolError;
      return;
    }
    if (is_wrong || is_longer_than_said) return end(WebSocketCode::kProtocolError);
    if (!is_control && length > kMaxMessageBytes - (opcode == 0 ? message_.size() : 0))
      return end(WebSocketCode::kTooBig);
    const bool is_whole = take(length, payload);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
    if (is_control) return is_whole ? take_control(opcode, payload) : end(WebSocketCode::kBroken);
    if (opcode != 0) {
      message_.clear();
      is_text_ = opcode == 1;
    }
    message_ += payload;
    is_in_message_ = true;
    if (is_text_ && !could_become_text()) return end(WebSocketCode::kBadText);
    if (!is_whole) return end(WebSocketCode::kBroken);
    if (!is_final) return;
    if (is_text_ && !is_valid_utf8(message_)) return end(WebSocketCode::kBadText);
    is_in_message_ = false;
    messages.emplace_back(message_, is_text_);
  }

  void take_control(int opcode, std::string_view payload) {
    if (opcode != 8) return;
    if (payload.empty()) return end(WebSocketCode::kNone);
    if (payload.size() == 1) return end(WebSocketCode::kProtocolError);
    const auto sent = static_cast<int>(number(payload.substr(0, 2)));
    const bool is_known = (sent >= 1000 && sent <= 1014 && sent != 1004 && sent != 1005 && sent != 1006) ||
                          (sent >= 3000 && sent <= 4999);
    const bool is_text = is_valid_utf8(payload.substr(2));
    end(is_known && is_text ? sent : int{WebSocketCode::kProtocolError});
    if (sent == 1014) other_code = WebSocketCode::kProtocolError;  // was registered after Beast's list was made
    if (sent >= 5000 && is_text) other_code = sent;                // RFC 6455 says nothing of these
  }

  // Valid, but for a character that more bytes could complete.
  bool could_become_text() const {
    for (std::string_view rest = message_; !rest.empty();) {
      const Utf8Step step = read_utf8(rest);
      if (step.kind != Utf8Step::Kind::kValid) return step.kind == Utf8Step::Kind::kIncomplete;
      rest.remove_prefix(static_cast<size_t>(step.num_bytes));
    }
    return true;
  }

  std::string_view bytes_;
  std::string message_;
  bool is_in_message_ = false, is_text_ = false;
};

void run(std::string_view bytes, size_t piece_bytes, bool has_handshake) {
  const std::string all = has_handshake ? std::string(kHandshake).append(bytes) : std::string(bytes);
  const Outcome whole = serve(all, std::max<size_t>(all.size(), 1));
  require(whole == serve(all, piece_bytes));
  if (!has_handshake) return;
  const PlainReader reader(bytes);
  require(whole.statuses == std::vector<int>{101} && whole.messages == reader.messages);
  require(whole.code == reader.code || whole.code == reader.other_code);
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 60000) return 0;
  transept::run(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1), size_t{1} + data[0] % 64,
                (data[0] & 0x80) != 0);
  return 0;
}

#include "net/websocket_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <thread>
#include <utility>

#include "net/as_tuple.h"
#include "net/http_chars.h"

namespace transept {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint16_t kBroken = 1006;

}  // namespace

// All but the queue's two ends runs on thread_.
class WebSocketClient::Impl final {
 public:
  Impl(Handler handler, const Options& options) : handler_(std::move(handler)), options_(options) {
    stream_.read_message_max(options.max_message_bytes);
  }
  ~Impl() {
    asio::post(io_, [this] {
      is_stopped_ = true;
      beast::get_lowest_layer(stream_).close();
      wake_.cancel();
    });
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status begin(const HttpUrl& url, const HttpHeaders& headers) {
    Status status = absl::UnknownError("");
    asio::co_spawn(io_, shake_hands(url, headers, &status), asio::detached);
    io_.run();
    io_.restart();
    if (!status.ok()) return status;
    asio::co_spawn(io_, read(), asio::detached);
    asio::co_spawn(io_, write(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
    return ok_status();
  }

  void send(std::string message, bool is_text) {
    asio::post(io_, [this, message = std::move(message), is_text]() mutable {
      outbox_.push_back({std::move(message), is_text});
      wake_.cancel();
    });
  }

  void close() {
    asio::post(io_, [this] {
      wants_close_ = true;
      wake_.cancel();
    });
  }

 private:
  struct Message {
    std::string bytes;
    bool is_text = false;
  };

  asio::awaitable<void> shake_hands(HttpUrl url, HttpHeaders headers, Status* status) {
    const bool is_ipv6 = url.host.find(':') != std::string::npos;
    const std::string place = str_cat(is_ipv6 ? "[" : "", url.host, is_ipv6 ? "]:" : ":", url.port);
    const auto failure = [&](const error_code& error) {
      const std::string text = str_cat(place, ": ", error.message());
      const bool is_late = error == beast::error::timeout;
      return is_late ? absl::DeadlineExceededError(text) : absl::UnavailableError(text);
    };
    beast::tcp_stream& connection = beast::get_lowest_layer(stream_);
    connection.expires_after(options_.timeout);
    tcp::resolver resolver(io_);
    auto [resolved, places] = co_await resolver.async_resolve(url.host, std::to_string(url.port), kAsTuple);
    if (resolved) {
      *status = failure(resolved);
      co_return;
    }
    auto [connected, peer] = co_await connection.async_connect(places, kAsTuple);
    if (connected) {
      *status = failure(connected);
      co_return;
    }
    connection.socket().set_option(tcp::no_delay(true));
    stream_.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
      for (const auto& [name, value] : headers) request.set(name, value);
    }));
    websocket::response_type response;
    auto [shaken] = co_await stream_.async_handshake(response, place, url.path, kAsTuple);
    if (shaken == websocket::error::upgrade_declined) {
      *status = absl::FailedPreconditionError(
          str_cat(place, ": the server answered ", response.result_int(), " ", std::string(response.reason())));
      co_return;
    }
    if (shaken) {
      *status = failure(shaken);
      co_return;
    }
    connection.expires_never();
    *status = ok_status();
  }

  asio::awaitable<void> read() {
    beast::flat_buffer buffer;
    for (;;) {
      auto [error, count] = co_await stream_.async_read(buffer, kAsTuple);
      if (is_stopped_) co_return;
      if (error) break;
      handler_.on_message(beast::buffers_to_string(buffer.data()));
      buffer.clear();
    }
    has_ended_ = true;
    wake_.cancel();
    const uint16_t code = stream_.reason().code;
    handler_.on_closed(code == websocket::close_code::none ? kBroken : code);
  }

  asio::awaitable<void> write() {
    while (!is_stopped_ && !has_ended_) {
      if (!outbox_.empty()) {
        const Message message = std::move(outbox_.front());
        outbox_.pop_front();
        stream_.text(message.is_text);
        auto [error, count] = co_await stream_.async_write(asio::buffer(message.bytes), kAsTuple);
        if (error) co_return;
      } else if (wants_close_) {
        co_await stream_.async_close(websocket::close_code::normal, kAsTuple);
        co_return;
      } else {
        wake_.expires_at(asio::steady_timer::time_point::max());
        co_await wake_.async_wait(kAsTuple);
      }
    }
  }

  const Handler handler_;
  const Options options_;
  asio::io_context io_;
  websocket::stream<beast::tcp_stream> stream_{io_};
  asio::steady_timer wake_{io_};
  std::deque<Message> outbox_;
  bool wants_close_ = false, has_ended_ = false, is_stopped_ = false;
  std::thread thread_;
};

StatusOr<std::unique_ptr<WebSocketClient>> WebSocketClient::connect(const HttpUrl& url, const HttpHeaders& headers,
                                                                    Handler handler, const Options& options) {
  for (const auto& [name, value] : headers) {
    if (!is_token(name) || !is_field_value(value)) return invalid_argument("a malformed header ", name);
  }
  auto impl = std::make_unique<Impl>(std::move(handler), options);
  RETURN_IF_ERROR(impl->begin(url, headers));
  return std::unique_ptr<WebSocketClient>(new WebSocketClient(std::move(impl)));
}

WebSocketClient::WebSocketClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebSocketClient::~WebSocketClient() = default;
void WebSocketClient::send(std::string message, bool is_text) { impl_->send(std::move(message), is_text); }
void WebSocketClient::close() { impl_->close(); }

}  // namespace transept

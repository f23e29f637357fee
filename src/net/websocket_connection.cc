#include "net/websocket_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <chrono>
#include <ctime>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "net/as_tuple.h"
#include "net/http_response_head.h"
#include "net/websocket_outbox.h"
#include "net/websocket_transport.h"

namespace transept {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;

constexpr uint64_t kMinMessageBytesPerSecond = 1 << 10;
constexpr int kMaxUnansweredPings = 2;

// Deadlines are looked at this often.
std::chrono::milliseconds poll_interval(const HttpServerOptions& options) {
  const std::chrono::milliseconds shortest = std::min(
      {options.websocket_ping_interval, options.websocket_close_timeout, options.write_timeout, options.body_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
}

// What Beast has to see of a request that is checked: it makes the answer from it. Extensions are left out.
beast::http::request<beast::http::empty_body> handshake_of(const HttpRequest& request) {
  namespace http = beast::http;
  http::request<http::empty_body> handshake(http::verb::get, "/", 11);
  handshake.set(http::field::host, "transept");
  handshake.set(http::field::connection, "upgrade");
  handshake.set(http::field::upgrade, "websocket");
  handshake.set(http::field::sec_websocket_version, "13");
  if (const std::string* key = request.header("Sec-WebSocket-Key")) {
    handshake.set(http::field::sec_websocket_key, *key);
  }
  return handshake;
}

// Beast finds that the last bytes of a text are half a character only if its last frame has bytes.
bool ends_within_a_character(std::string_view text) {
  const size_t begin = text.size() - std::min<size_t>(text.size(), 3);
  for (size_t at = text.size(); at-- > begin;) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) return !is_valid_utf8(text.substr(at));
  }
  return false;
}

asio::awaitable<void> wait_for(asio::steady_timer& timer) {
  [[maybe_unused]] const auto ignored = co_await timer.async_wait(kAsTuple);
}

}  // namespace

class WebSocketConnection::Impl final : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::ip::tcp::socket& socket, const HttpServerOptions& options,
       std::shared_ptr<const std::atomic<bool>> draining, std::shared_ptr<ReadTicker> ticker, WebSocketUpgrade upgrade)
      : socket_(socket),
        options_(options),
        draining_(std::move(draining)),
        ticker_(std::move(ticker)),
        upgrade_(std::move(upgrade)),
        writer_wake_(socket.get_executor(), asio::steady_timer::time_point::max()),
        reader_wake_(socket.get_executor(), asio::steady_timer::time_point::max()),
        end_wake_(socket.get_executor(), asio::steady_timer::time_point::max()),
        poll_(socket.get_executor()) {}

  asio::awaitable<End> run(const HttpRequest& request, std::string leftover);
  void drain();
  void stop();

 private:
  using Stream = websocket::stream<WebSocketTransport, false>;

  void begin(const HttpRequest& request, std::string leftover);
  void spawn(asio::awaitable<void> (Impl::*work)());
  void end_task(const std::exception_ptr& exception);
  asio::awaitable<void> serve(const HttpRequest& request);
  asio::awaitable<void> read_messages();
  asio::awaitable<void> write_messages();
  asio::awaitable<void> watch();
  void take(std::string message, bool is_text);
  template <class Call>
  void tell_handler(const Call& call);
  uint16_t code_of(const error_code& error) const;
  void note_read_error(const error_code& error);
  void check(TimePoint now, Duration passed);
  void check_message(Duration passed);
  void refuse_fragments();
  void check_silence();
  void on_wake();
  void set_patient(bool is_patient);
  void wake_all();
  void drop(bool reset);

  WebSocketTransport& transport() { return stream_->next_layer(); }

  asio::ip::tcp::socket& socket_;
  const HttpServerOptions& options_;
  const std::shared_ptr<const std::atomic<bool>> draining_;
  const std::shared_ptr<ReadTicker> ticker_;  // null: none is patient
  std::shared_ptr<ReadTicker::Watch> watch_;  // patient
  WebSocketUpgrade upgrade_;
  std::shared_ptr<WebSocketOutbox> outbox_;
  std::optional<Stream> stream_;
  asio::steady_timer writer_wake_, reader_wake_, end_wake_, poll_;
  std::array<char, kReadBytes> buffer_;
  int num_tasks_ = 0;  // coroutines beside run()
  bool must_end_ = false, is_open_ = false, has_drained_ = false, wants_ping_ = false;
  bool has_ended_close_ = false, was_closed_ = false, was_too_slow_ = false;
  uint16_t end_code_ = WebSocketCode::kBroken;
  std::optional<WebSocketOutbox::Close> sent_close_;
  TimePoint close_begin_{};
  // Times in which the client could be heard.
  Duration message_age_{}, message_pause_{}, since_ping_{};
  uint64_t num_messages_seen_ = 0, num_message_bytes_seen_ = 0, num_bytes_seen_ = 0;
  int num_unanswered_pings_ = 0;
};

WebSocketConnection::WebSocketConnection(asio::ip::tcp::socket& socket, const HttpServerOptions& options,
                                         std::shared_ptr<const std::atomic<bool>> draining,
                                         std::shared_ptr<ReadTicker> ticker, WebSocketUpgrade upgrade)
    : impl_(std::make_shared<Impl>(socket, options, std::move(draining), std::move(ticker), std::move(upgrade))) {}
WebSocketConnection::~WebSocketConnection() = default;
asio::awaitable<WebSocketConnection::End> WebSocketConnection::run(const HttpRequest& request, std::string leftover) {
  return impl_->run(request, std::move(leftover));
}
void WebSocketConnection::drain() { impl_->drain(); }
void WebSocketConnection::stop() { impl_->stop(); }

// ---- From the handshake to the end

asio::awaitable<WebSocketConnection::End> WebSocketConnection::Impl::run(const HttpRequest& request,
                                                                         std::string leftover) {
  bool has_failed = false;
  try {
    begin(request, std::move(leftover));
    co_await serve(request);
  } catch (const std::exception& exception) {  // no memory
    log_error("a WebSocket was given up: ", exception.what());
    has_failed = true;
  }
  must_end_ = true;
  set_patient(false);
  if (outbox_) {
    outbox_->go();
    outbox_->detach();
  }
  if (has_failed || was_too_slow_) was_closed_ = false;
  if (was_too_slow_) end_code_ = WebSocketCode::kPolicy;
  if (!was_closed_) drop(was_too_slow_);
  wake_all();
  while (num_tasks_ > 0) co_await wait_for(end_wake_);
  End end{.was_opened = is_open_, .was_closed = was_closed_};
  if (stream_.has_value()) end.num_sent_bytes = transport().num_sent_bytes();
  if (is_open_) {
    is_open_ = false;
    tell_handler([&](WebSocketHandler& handler) { handler.on_closed(end_code_); });
  }
  upgrade_.handler.reset();
  stream_.reset();
  co_return end;
}

void WebSocketConnection::Impl::begin(const HttpRequest& request, std::string leftover) {
  outbox_ = std::make_shared<WebSocketOutbox>(options_.max_unsent_bytes, [self = shared_from_this()] {
    asio::post(self->poll_.get_executor(), [self] { self->on_wake(); });
  });
  stream_.emplace(socket_, std::move(leftover), [this] { watch_->arm(); });
  stream_->read_message_max(upgrade_.max_message_bytes);
  stream_->auto_fragment(false);
  stream_->set_option(websocket::stream_base::decorator(
      [id = request.request_id, subprotocol = upgrade_.subprotocol](websocket::response_type& response) {
        response.set(beast::http::field::server, "transept");  // else Beast names itself
        response.set(beast::http::field::date, http_date(std::time(nullptr)));
        response.set("X-Request-Id", id);
        if (!subprotocol.empty()) response.set(beast::http::field::sec_websocket_protocol, subprotocol);
      }));
}

asio::awaitable<void> WebSocketConnection::Impl::serve(const HttpRequest& request) {
  spawn(&Impl::watch);
  const auto handshake = handshake_of(request);
  const auto [error] = co_await stream_->async_accept(handshake, kAsTuple);
  if (error || must_end_) co_return;
  is_open_ = true;
  tell_handler([&](WebSocketHandler& handler) { handler.on_open(outbox_); });
  if (draining_->load()) drain();
  spawn(&Impl::write_messages);
  co_await read_messages();
  while (sent_close_.has_value() && !has_ended_close_) co_await wait_for(end_wake_);
}

void WebSocketConnection::Impl::spawn(asio::awaitable<void> (Impl::*work)()) {
  asio::awaitable<void> task = (this->*work)();
  ++num_tasks_;
  try {
    asio::co_spawn(socket_.get_executor(), std::move(task),
                   [self = shared_from_this()](const std::exception_ptr& exception) { self->end_task(exception); });
  } catch (...) {
    --num_tasks_;
    throw;
  }
}

void WebSocketConnection::Impl::end_task(const std::exception_ptr& exception) {
  if (exception) {
    log_error("a WebSocket was ended by an exception");
    has_ended_close_ = true;
    drop(false);
  }
  --num_tasks_;
  end_wake_.cancel();
}

void WebSocketConnection::Impl::drain() {
  if (!is_open_ || must_end_ || has_drained_ || outbox_->is_closing()) return;
  has_drained_ = true;
  tell_handler([](WebSocketHandler& handler) { handler.on_drain(); });
}

void WebSocketConnection::Impl::stop() {
  must_end_ = true;
  wake_all();
}

template <class Call>
void WebSocketConnection::Impl::tell_handler(const Call& call) {
  try {
    call(*upgrade_.handler);
  } catch (const std::exception& exception) {
    log_error("a WebSocket's handler failed: ", exception.what());
    outbox_->close(WebSocketCode::kInternal, "internal error");
  }
}

// ---- What comes

asio::awaitable<void> WebSocketConnection::Impl::read_messages() {
  std::string message;
  while (!must_end_) {
    if (outbox_->is_paused() && !outbox_->is_closing()) {
      co_await wait_for(reader_wake_);
      continue;
    }
    const auto [error, num_bytes] = co_await stream_->async_read_some(asio::buffer(buffer_), kAsTuple);
    if (error) co_return note_read_error(error);
    message.append(buffer_.data(), num_bytes);
    if (stream_->is_message_done()) take(std::exchange(message, {}), stream_->got_text());
  }
}

void WebSocketConnection::Impl::take(std::string message, bool is_text) {
  if (outbox_->is_closing() || outbox_->is_gone()) return;
  if (is_text && ends_within_a_character(message)) return outbox_->close(WebSocketCode::kBadText, "");
  if (transport().frames().most_frames() > kMaxFragments) return refuse_fragments();
  tell_handler([&](WebSocketHandler& handler) { handler.on_message(std::move(message), is_text); });
}

void WebSocketConnection::Impl::note_read_error(const error_code& error) {
  if (sent_close_.has_value()) {
    end_code_ = sent_close_->code;
    was_closed_ = was_closed_ || error == websocket::error::closed;
  } else {
    end_code_ = code_of(error);
    was_closed_ = end_code_ != WebSocketCode::kBroken;
  }
}

// As Beast has closed it.
uint16_t WebSocketConnection::Impl::code_of(const error_code& error) const {
  if (error == websocket::error::closed) {
    const uint16_t code = stream_->reason().code;
    return code == websocket::close_code::none ? WebSocketCode::kNone : code;
  }
  if (error == websocket::error::message_too_big) return WebSocketCode::kTooBig;
  if (error == websocket::error::bad_frame_payload) return WebSocketCode::kBadText;
  return error == websocket::condition::protocol_violation ? WebSocketCode::kProtocolError : WebSocketCode::kBroken;
}

// ---- What goes

asio::awaitable<void> WebSocketConnection::Impl::write_messages() {
  error_code error;
  while (!must_end_ && !error) {
    // In this order: what was sent before close() is in the outbox then.
    const std::optional<WebSocketOutbox::Close> close = outbox_->asked_close();
    const std::optional<WebSocketOutbox::Message> message = outbox_->take_message();
    if (std::exchange(wants_ping_, false) && !close.has_value()) {
      std::tie(error) = co_await stream_->async_ping({}, kAsTuple);
      if (error) break;
    }
    if (message.has_value()) {
      stream_->text(message->is_text);
      std::tie(error, std::ignore) = co_await stream_->async_write(asio::buffer(message->bytes), kAsTuple);
    } else if (close.has_value()) {
      sent_close_ = close;
      close_begin_ = steady_now();
      const websocket::close_reason reason(static_cast<websocket::close_code>(close->code), close->why);
      std::tie(error) = co_await stream_->async_close(reason, kAsTuple);
      has_ended_close_ = true;
      was_closed_ = was_closed_ || !error;
      break;
    } else {
      co_await wait_for(writer_wake_);
    }
  }
  // Aborted: Beast has closed, or the socket is closed already.
  if (error && error != asio::error::operation_aborted && error != websocket::error::closed) drop(false);
}

// ---- Deadlines

asio::awaitable<void> WebSocketConnection::Impl::watch() {
  const Duration interval = poll_interval(options_);
  TimePoint last = steady_now();
  while (!must_end_) {
    // On a grid that all connections have in common: one wake-up is for all of them.
    poll_.expires_at(last + interval - last.time_since_epoch() % interval);
    co_await wait_for(poll_);
    const TimePoint now = steady_now();
    if (!must_end_) check(now, now - std::exchange(last, now));
  }
}

void WebSocketConnection::Impl::check(TimePoint now, Duration passed) {
  const auto write_begin = transport().write_begin();
  if (write_begin.has_value() && now - *write_begin > options_.write_timeout) {
    was_too_slow_ = true;
    return drop(true);
  }
  if (sent_close_.has_value() && now - close_begin_ > options_.websocket_close_timeout) return drop(false);
  if (!is_open_ || outbox_->is_closing()) return;
  since_ping_ += passed;
  if (!outbox_->is_paused()) check_message(passed);
  check_silence();
}

void WebSocketConnection::Impl::check_message(Duration passed) {
  const WebSocketFrameCounter& frames = transport().frames();
  if (!frames.is_in_message() || std::exchange(num_messages_seen_, frames.num_messages()) != frames.num_messages()) {
    message_age_ = message_pause_ = {};
    return;
  }
  const uint64_t num_bytes = frames.num_payload_bytes();
  message_age_ += passed;
  message_pause_ =
      std::exchange(num_message_bytes_seen_, num_bytes) == num_bytes ? message_pause_ + passed : Duration();
  const std::chrono::milliseconds earned(1000 * (num_bytes / kMinMessageBytesPerSecond));
  if (frames.num_frames() > kMaxFragments) {
    refuse_fragments();
  } else if (message_pause_ > options_.body_timeout || message_age_ > options_.body_timeout + earned) {
    outbox_->close(WebSocketCode::kPolicy, "a message did not come in time");
  }
}

void WebSocketConnection::Impl::refuse_fragments() {
  outbox_->close(WebSocketCode::kPolicy, "a message has too many fragments");
}

void WebSocketConnection::Impl::check_silence() {
  const bool is_heard = std::exchange(num_bytes_seen_, transport().num_read_bytes()) != transport().num_read_bytes();
  if (is_heard || outbox_->is_paused()) num_unanswered_pings_ = 0;
  if (since_ping_ < options_.websocket_ping_interval) return;
  if (num_unanswered_pings_ == kMaxUnansweredPings) return drop(false);
  since_ping_ = {};
  ++num_unanswered_pings_;
  wants_ping_ = true;
  writer_wake_.cancel();
}

void WebSocketConnection::Impl::on_wake() {
  if (must_end_) return;
  if (outbox_->was_too_slow()) {
    was_too_slow_ = true;
    drop(true);
  }
  set_patient(outbox_->is_patient());
  writer_wake_.cancel();
  reader_wake_.cancel();
}

void WebSocketConnection::Impl::set_patient(bool is_patient) {
  if (ticker_ == nullptr || !stream_.has_value() || is_patient == (watch_ != nullptr)) return;
  if (is_patient) {
    if (!socket_.is_open()) return;
    watch_ = std::make_shared<ReadTicker::Watch>(socket_.native_handle(), [weak = weak_from_this()] {
      const std::shared_ptr<Impl> self = weak.lock();
      if (self == nullptr) return;
      asio::dispatch(self->poll_.get_executor(), [self] {
        if (self->stream_.has_value()) self->transport().wake();
      });
    });
    ticker_->add(watch_);
  } else {
    ticker_->remove(std::exchange(watch_, nullptr));
  }
  transport().set_patient(is_patient);
}

void WebSocketConnection::Impl::wake_all() {
  if (stream_.has_value()) transport().wake();
  writer_wake_.cancel();
  reader_wake_.cancel();
  poll_.cancel();
}

// Whatever waits for the socket ends.
void WebSocketConnection::Impl::drop(bool reset) {
  error_code ignored;
  if (reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
  must_end_ = true;
  wake_all();
}

}  // namespace transept

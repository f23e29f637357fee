#include "net/http_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <random>
#include <utility>

#include "base/log.h"
#include "net/as_tuple.h"
#include "net/http_chars.h"
#include "net/websocket_handshake.h"

namespace transept {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Requests that came before their turn; a client that sends more waits, and is not seen to go meanwhile.
constexpr size_t kMaxPipelinedBytes = 64 << 10;

constexpr size_t kMaxPassedOverBytes = 16 << 10;  // of a refused request's body

// A body that drips in holds a place in a queue: it may not pause for body_timeout, and past that time it must have
// come at this rate. Of chunks, what they hold counts.
constexpr size_t kMinBodyBytesPerSecond = 1 << 10;

// Behind an answer that ends the connection, what still comes is read and thrown away for a while: closing a socket
// with unread bytes sends a reset, which can overtake the answer (RFC 9112, 9.6). Enough for a whole upload that was
// refused, since clients that send their body first would otherwise never see why.
constexpr size_t kMaxLingerBytes = 64 << 20;
constexpr std::chrono::milliseconds kLingerTimeout{10000}, kShortLinger{50};

class OwedAnswer final {
 public:
  explicit OwedAnswer(OwedAnswers& owed) : owed_(owed) { owed_.add(); }
  ~OwedAnswer() { owed_.remove(); }
  OwedAnswer(const OwedAnswer&) = delete;
  OwedAnswer& operator=(const OwedAnswer&) = delete;

 private:
  OwedAnswers& owed_;
};

std::string new_request_id() {
  std::random_device random;
  std::string id = "req-";
  for (int word = 0; word < 3; ++word) {
    uint32_t bits = random();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) id.push_back("0123456789abcdef"[bits & 15]);
  }
  return id;
}

// The client's, where it is fit for logs and headers.
std::string request_id_of(const HttpHeaders& headers) {
  const std::string* id = find_header(headers, "X-Request-Id");
  const bool is_fit =
      id != nullptr && !id->empty() && id->size() <= 128 && std::all_of(id->begin(), id->end(), [](char c) {
        return is_digit(c) || is_letter(c) || std::string_view("._:/-").find(c) != std::string_view::npos;
      });
  return is_fit ? *id : new_request_id();
}

}  // namespace

class HttpConnection::Incoming final : public IncomingBody {
 public:
  Incoming(std::weak_ptr<HttpConnection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}

  void refuse(HttpResponse response) override {
    const std::shared_ptr<HttpConnection> connection = connection_.lock();
    if (connection == nullptr) return;
    asio::post(connection->socket_.get_executor(),
               [connection, number = number_, response = std::move(response)]() mutable {
                 connection->refuse_body(number, std::move(response));
               });
  }

 private:
  const std::weak_ptr<HttpConnection> connection_;
  const uint64_t number_;
};

void OwedAnswers::add() {
  const MutexLock lock(mutex_);
  ++count_;
}

void OwedAnswers::remove() {
  const MutexLock lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

bool OwedAnswers::wait_until_none(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (count_ > 0 && none_.wait_until(mutex_, end)) {
  }
  return count_ == 0;
}

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, HttpServerContext& context)
    : socket_(std::move(socket)),
      context_(context),
      deadline_(socket_.get_executor()),
      wake_(socket_.get_executor(), asio::steady_timer::time_point::max()) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  // Clients that vanished without a word are noticed by the system, if late.
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  error_code error;
  const auto endpoint = socket_.remote_endpoint(error);
  if (error) return;
  asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  peer_ = address.to_string();
  peer_is_loopback_ = address.is_loopback();
}

void HttpConnection::start() { spawn(&HttpConnection::serve); }

void HttpConnection::refuse(bool soon) {
  if (soon) linger_idle_timeout_ = kShortLinger;
  spawn(&HttpConnection::serve_refusal);
}

void HttpConnection::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->is_idle_) self->close(false);
    if (self->websocket_) self->websocket_->drain();
  });
}

void HttpConnection::stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->is_stopped_ = true;
    if (self->exchange_) self->exchange_->go(false);
    self->close(false);
    self->wake_.cancel();
    if (self->websocket_) self->websocket_->stop();
    if (self->tunnel_) self->tunnel_->stop();
  });
}

// Posted, since co_spawn would run the first steps at once, under whatever locks the caller holds.
void HttpConnection::spawn(asio::awaitable<void> (HttpConnection::*work)()) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), work] {
    asio::co_spawn(self->socket_.get_executor(), (self.get()->*work)(),
                   [self](const std::exception_ptr& exception) { self->finish(exception); });
  });
}

asio::awaitable<void> HttpConnection::serve() {
  // gcc 12 miscompiles a co_await in a loop's condition.
  After after = After::kGoOn;
  for (; after == After::kGoOn; is_first_ = false) after = co_await serve_one();
  if (after == After::kLinger) co_await linger();
}

asio::awaitable<void> HttpConnection::serve_refusal() {
  HttpHead head;
  head.request.peer = peer_;
  head.request.peer_is_loopback = peer_is_loopback_;
  head.request.request_id = new_request_id();
  begin_exchange(head);
  answer_error({503, "too many connections"});
  const After after = co_await answer(head.request);
  if (after == After::kLinger) co_await linger();
}

asio::awaitable<HttpConnection::After> HttpConnection::serve_one() {
  const HttpServerOptions& options = context_.options;
  HttpRequestParser parser({options.max_request_line_bytes, options.max_header_bytes, options.max_headers});
  const Input input = co_await read_head(parser);
  if (input == Input::kClosed) co_return After::kClose;
  const OwedAnswer owed(context_.owed);
  HttpRequest& request = parser.head().request;
  request.peer = peer_;
  request.peer_is_loopback = peer_is_loopback_;
  request.request_id = request_id_of(request.headers);
  begin_exchange(parser.head());
  try {
    if (input == Input::kTimedOut) {
      answer_error({408, "the request's head did not come in time"});
    } else if (input == Input::kFailed) {
      answer_error(parser.error());
    } else {
      co_await receive(parser);
    }
  } catch (const std::exception& exception) {  // the service finds no memory, say
    give_up(exception.what());
  }
  if (websocket_) co_return co_await serve_websocket(request);
  std::exception_ptr failure;
  try {
    co_return co_await answer(request);
  } catch (...) {
    failure = std::current_exception();
  }
  if (exchange_) end_exchange(request, false, 500);
  std::rethrow_exception(failure);
}

// kClosed: there is no request to answer.
asio::awaitable<HttpConnection::Input> HttpConnection::read_head(HttpRequestParser& parser) {
  bool has_begun = false;
  arm(is_first_ ? context_.options.header_timeout : context_.options.idle_timeout, false);
  while (true) {
    feed(parser);
    if (parser.has_begun() && !has_begun) {
      has_begun = true;
      if (!is_first_) arm(context_.options.header_timeout, false);
    }
    if (parser.state() != HttpRequestParser::State::kHead) break;
    is_idle_ = !is_first_ && !has_begun;
    if (is_idle_ && context_.draining->load()) co_return Input::kClosed;
    const Input input = co_await read_more();
    is_idle_ = false;
    if (input == Input::kClosed || (input == Input::kTimedOut && !has_begun)) co_return Input::kClosed;
    if (input == Input::kTimedOut) co_return input;
  }
  disarm();
  co_return parser.state() == HttpRequestParser::State::kFailed ? Input::kFailed : Input::kDone;
}

// The rest of the request, and its way to the service, or the answer that it has already.
asio::awaitable<void> HttpConnection::receive(HttpRequestParser& parser) {
  const HttpHead& head = parser.head();
  HttpService::Decision decision = context_.service.on_head(head.request);
  if (decision.refusal.has_value()) {
    if (!pass_over_body(parser)) exchange_->close_after();
    exchange_->respond(*decision.refusal);
    co_return;
  }
  if (decision.upgrade.has_value()) co_return begin_websocket(head, *std::move(decision.upgrade));
  if (decision.may_tunnel) {
    if (const auto error = check_websocket_handshake(head)) {
      co_return answer_error(*error, handshake_error_headers(error->status));
    }
    exchange_->close_after();
  }
  parser.read_body(decision.max_body_bytes);
  const Input input = co_await read_body(parser, decision.ticket);
  ++body_number_;  // who would refuse it comes too late
  if (input == Input::kRefused) {
    disarm();
    exchange_->close_after();
    exchange_->respond(*std::exchange(body_refusal_, std::nullopt));
  } else if (input == Input::kClosed) {
    exchange_->go(false);
  } else if (input == Input::kTimedOut) {
    answer_error({408, "the request's body did not come in time"});
  } else if (input == Input::kFailed) {
    answer_error(parser.error());
  } else {
    HttpRequest request = head.request;
    request.body = parser.take_body();
    context_.service.on_request(std::move(request), std::move(decision.ticket), make_responder(exchange_));
  }
}

// Of a refused request, if it is small and came with its head: who is told to try again later keeps the connection,
// which is most of what a refusal costs. Any other body may never come, and the connection ends.
bool HttpConnection::pass_over_body(HttpRequestParser& parser) {
  parser.read_body(kMaxPassedOverBytes);
  feed(parser);
  return parser.state() == HttpRequestParser::State::kComplete;
}

asio::awaitable<HttpConnection::Input> HttpConnection::read_body(HttpRequestParser& parser,
                                                                 const std::shared_ptr<void>& ticket) {
  body_refusal_.reset();
  if (!feed_body(parser, ticket)) co_return Input::kRefused;
  if (parser.state() == HttpRequestParser::State::kBody) {
    const auto incoming = std::make_shared<Incoming>(weak_from_this(), body_number_);
    body_refusal_ = context_.service.on_body_awaited(parser.head().request, ticket, incoming);
    const Input input = body_refusal_.has_value() ? Input::kRefused : co_await continue_body(parser);
    if (input != Input::kDone) co_return input;
  }
  const TimePoint begin = SteadyClock().now();
  while (parser.state() == HttpRequestParser::State::kBody) {
    const std::chrono::milliseconds earned(1000 * parser.num_body_bytes() / kMinBodyBytesPerSecond);
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock().now() - begin);
    const std::chrono::milliseconds left = context_.options.body_timeout + earned - passed;
    if (left.count() <= 0) co_return Input::kTimedOut;
    arm(std::min(left, context_.options.body_timeout), false);
    const Input input = co_await read_more();
    if (body_refusal_.has_value()) co_return Input::kRefused;
    if (input != Input::kDone) co_return input;
    if (!feed_body(parser, ticket)) co_return Input::kRefused;
  }
  disarm();
  co_return parser.state() == HttpRequestParser::State::kFailed ? Input::kFailed : Input::kDone;
}

// Tells a client that asks that its body is wanted.
asio::awaitable<HttpConnection::Input> HttpConnection::continue_body(HttpRequestParser& parser) {
  if (!parser.head().expects_continue || !input_.empty() || parser.num_body_bytes() > 0) co_return Input::kDone;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  arm(context_.options.body_timeout, false);
  const auto [error, num_sent] = co_await asio::async_write(socket_, asio::buffer(kContinue), kAsTuple);
  if (body_refusal_.has_value()) co_return Input::kRefused;
  co_return error ? Input::kClosed : Input::kDone;
}

// False: the service refuses what has come by now.
bool HttpConnection::feed_body(HttpRequestParser& parser, const std::shared_ptr<void>& ticket) {
  const size_t before = parser.num_body_bytes();
  feed(parser);
  if (parser.num_body_bytes() > before) {
    body_refusal_ = context_.service.on_body_bytes(ticket, parser.num_body_bytes());
  }
  return !body_refusal_.has_value();
}

void HttpConnection::refuse_body(uint64_t number, HttpResponse response) {
  if (number != body_number_ || body_refusal_.has_value()) return;
  body_refusal_ = std::move(response);
  error_code ignored;
  socket_.cancel(ignored);
}

asio::awaitable<HttpConnection::Input> HttpConnection::read_more() {
  if (is_stopped_ || peer_has_closed_) co_return Input::kClosed;
  timed_out_ = false;
  const auto [error, num_read] = co_await socket_.async_read_some(asio::buffer(buffer_), kAsTuple);
  if (is_stopped_) co_return Input::kClosed;
  if (timed_out_) co_return Input::kTimedOut;
  if (error) co_return Input::kClosed;
  input_.append(buffer_.data(), num_read);
  co_return Input::kDone;
}

// Sends what the exchange brings until its end, while looking out for the client.
asio::awaitable<HttpConnection::After> HttpConnection::answer(const HttpRequest& request) {
  bool is_complete = false;
  while (!is_complete && !exchange_->is_gone()) {
    HttpExchange::Outgoing outgoing = exchange_->take();
    if (outgoing.needs_answer) {
      exchange_->respond(context_.service.on_error(500, "internal error", request.request_id));
      continue;
    }
    if (!outgoing.is_last) watch();
    if (!outgoing.bytes.empty()) {
      co_await send(std::move(outgoing.bytes));
    } else if (!outgoing.is_last) {
      co_await wait_for_wake();
    }
    is_complete = outgoing.is_last && !exchange_->is_gone();
  }
  co_await end_watch();
  if (auto tunnel = exchange_->take_tunnel(); tunnel.has_value() && is_complete) {
    co_return co_await serve_tunnel(request, *std::move(tunnel));
  }
  const std::shared_ptr<HttpExchange> exchange = end_exchange(request, is_complete, 499);
  if (is_complete && !exchange->closes() && !peer_has_closed_ && !is_stopped_) co_return After::kGoOn;
  if (is_complete && !exchange->was_abandoned()) co_return After::kLinger;
  // Of HTTP/1.0 a closed connection is an answer's regular end; a reset is not.
  close(exchange->was_too_slow() || exchange->was_abandoned());
  co_return After::kClose;
}

asio::awaitable<void> HttpConnection::send(std::string bytes) {
  for (size_t num_sent = 0; num_sent < bytes.size();) {
    arm(context_.options.write_timeout, true);
    const auto rest = asio::buffer(bytes.data() + num_sent, bytes.size() - num_sent);
    const auto [error, num_written] = co_await socket_.async_write_some(rest, kAsTuple);
    if (error) {
      exchange_->go(false);
      break;
    }
    num_sent += num_written;
    exchange_->note_sent(num_written);
  }
  disarm();
}

asio::awaitable<void> HttpConnection::linger() {
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  const TimePoint end = SteadyClock().now() + kLingerTimeout;
  for (size_t num_read = input_.size(); !error && num_read < kMaxLingerBytes; num_read += input_.size()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock().now());
    if (left.count() <= 0) break;
    arm(std::min(left, linger_idle_timeout_), false);
    input_.clear();
    const Input input = co_await read_more();
    if (input != Input::kDone) break;
  }
}

asio::awaitable<void> HttpConnection::wait_for_wake() {
  [[maybe_unused]] const auto result = co_await wake_.async_wait(kAsTuple);
}

// Nothing reads any more when it is done; what was read is in input_.
asio::awaitable<void> HttpConnection::end_watch() {
  error_code ignored;
  if (is_watching_) socket_.cancel(ignored);
  while (is_watching_) co_await wait_for_wake();
}

void HttpConnection::feed(HttpRequestParser& parser) { input_.erase(0, parser.feed(input_)); }

void HttpConnection::begin_exchange(const HttpHead& head) {
  HttpExchange::Options options;
  options.is_head = head.request.method == "HEAD";
  options.minor_version = head.minor_version;
  options.keep_alive = head.keep_alive;
  options.request_id = head.request.request_id;
  options.max_unsent_bytes = context_.options.max_unsent_bytes;
  options.draining = context_.draining;
  exchange_ = std::make_shared<HttpExchange>(std::move(options), [self = shared_from_this()] {
    asio::post(self->socket_.get_executor(), [self] { self->on_wake(); });
  });
}

void HttpConnection::begin_websocket(const HttpHead& head, WebSocketUpgrade upgrade) {
  const auto error = check_websocket_handshake(head);
  if (error.has_value()) return answer_error(*error, handshake_error_headers(error->status));
  websocket_.emplace(socket_, context_.options, context_.draining, context_.read_ticker, std::move(upgrade));
}

// What was read behind the head are its first frames.
asio::awaitable<HttpConnection::After> HttpConnection::serve_websocket(const HttpRequest& request) {
  const std::shared_ptr<HttpExchange> exchange = std::exchange(exchange_, nullptr);
  exchange->detach();
  // Not within the co_await: GCC 12 destroys the string of that twice, without optimisation.
  auto served = websocket_->run(request, std::exchange(input_, {}));
  const WebSocketConnection::End end = co_await std::move(served);
  websocket_.reset();
  context_.service.on_done(request, end.was_opened ? 101 : 499, exchange->seconds(), end.num_sent_bytes);
  co_return end.was_closed && !is_stopped_ ? After::kLinger : After::kClose;
}

// What was read behind the request is the other server's.
asio::awaitable<HttpConnection::After> HttpConnection::serve_tunnel(const HttpRequest& request, Tunnel tunnel) {
  const std::shared_ptr<HttpExchange> exchange = std::exchange(exchange_, nullptr);
  exchange->detach();
  tunnel_.emplace(socket_, context_.options, std::move(tunnel));
  if (is_stopped_) tunnel_->stop();
  auto served = tunnel_->run(std::exchange(input_, {}), peer_has_closed_);
  const TunnelConnection::End end = co_await std::move(served);
  tunnel_.reset();
  peer_has_closed_ = end.client_has_ended;
  context_.service.on_done(request, 101, exchange->seconds(), exchange->num_sent_bytes() + end.num_sent_bytes);
  co_return end.was_ended && !is_stopped_ && !peer_has_closed_ ? After::kLinger : After::kClose;
}

void HttpConnection::answer_error(const HttpError& error, const HttpHeaders& headers) {
  HttpResponse response = context_.service.on_error(error.status, error.reason, exchange_->request_id());
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  exchange_->close_after();
  exchange_->respond(response);
}

// The answer is 500, unless one has begun: that one ends where it is.
void HttpConnection::give_up(const char* why) {
  log_error("a request was given up: ", why);
  disarm();
  answer_error({500, "internal error"});
  exchange_->abandon();
}

std::shared_ptr<HttpExchange> HttpConnection::end_exchange(const HttpRequest& request, bool is_complete,
                                                           int status_of_incomplete) {
  std::shared_ptr<HttpExchange> exchange = std::exchange(exchange_, nullptr);
  exchange->detach();
  if (!is_complete) {
    exchange->go(false);
    exchange->notify_gone();
  }
  const int status = is_complete ? exchange->status() : status_of_incomplete;
  context_.service.on_done(request, status, exchange->seconds(), exchange->num_sent_bytes());
  return exchange;
}

// Reads on while a request is worked on: that is how a client's going is seen. What it brings is kept for later.
void HttpConnection::watch() {
  if (is_watching_ || peer_has_closed_ || input_.size() >= kMaxPipelinedBytes) return;
  is_watching_ = true;
  socket_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                            self->on_watched(error && error != asio::error::operation_aborted, num_bytes);
                          });
}

void HttpConnection::on_watched(bool has_failed, size_t num_bytes) {
  is_watching_ = false;
  input_.append(buffer_.data(), num_bytes);
  if (has_failed) {
    peer_has_closed_ = true;
    if (exchange_ && !exchange_->has_ended()) {
      exchange_->go(false);
      close(false);
    }
  }
  wake_.cancel();
}

void HttpConnection::on_wake() {
  if (exchange_ && exchange_->is_gone()) close(exchange_->was_too_slow());  // ends a write that hangs
  wake_.cancel();
}

void HttpConnection::arm(std::chrono::milliseconds timeout, bool is_write) {
  deadline_.expires_after(timeout);
  // A handler may be on its way already when its deadline is moved.
  deadline_.async_wait([self = shared_from_this(), number = ++deadline_number_, is_write](const error_code& error) {
    if (error || number != self->deadline_number_) return;
    if (is_write) {
      self->exchange_->go(true);
      return self->close(true);
    }
    self->timed_out_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void HttpConnection::disarm() {
  ++deadline_number_;
  deadline_.cancel();
}

void HttpConnection::close(bool reset) {
  error_code ignored;
  if (reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

void HttpConnection::finish(const std::exception_ptr& exception) {
  if (exception) log_error("an HTTP connection was ended by an exception");
  if (exchange_) {
    exchange_->go(false);
    exchange_->detach();
    exchange_->notify_gone();
    exchange_.reset();
  }
  disarm();
  wake_.cancel();
  close(false);
  context_.on_closed(this);
}

}  // namespace transept

// One connection of an HttpServer: reads requests in order, passes them to the service, sends the answers. Runs on a
// strand; start, refuse, drain and stop may be called from any thread. Keeps itself alive while it runs.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "net/http_exchange.h"
#include "net/http_request_parser.h"
#include "net/http_server_options.h"
#include "net/http_service.h"
#include "net/read_ticker.h"
#include "net/tunnel_connection.h"
#include "net/websocket_connection.h"

namespace transept {

// Counts the requests whose answers are not finished. Thread-safe.
class OwedAnswers final {
 public:
  void add();
  void remove();
  bool wait_until_none(std::chrono::milliseconds timeout);  // false: timed out

 private:
  Mutex mutex_;
  CondVar none_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

class HttpConnection;

// State that all connections of a server share. The HttpServer owns it; it outlives the connections.
struct HttpServerContext {
  HttpServerOptions options;
  HttpService& service;
  std::shared_ptr<std::atomic<bool>> draining = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<ReadTicker> read_ticker;  // null: no WebSocket is patient
  OwedAnswers owed;
  std::function<void(const HttpConnection*)> on_closed;  // called on any I/O thread
};

class HttpConnection final : public std::enable_shared_from_this<HttpConnection> {
 public:
  // REQUIRES: the socket's executor is a strand.
  HttpConnection(boost::asio::ip::tcp::socket socket, HttpServerContext& context);

  // Call either start() or refuse(), once.
  void start();
  // Answers 503, and closes. `soon`: after a moment, even if the client is idle, as its descriptor is wanted.
  void refuse(bool soon);
  // Closes if the connection is between two requests; a new connection may still send one. A WebSocket's handler is
  // told.
  void drain();
  void stop();  // closes; a client that waits for an answer counts as gone

 private:
  using Milliseconds = std::chrono::milliseconds;
  enum class Input { kDone, kFailed, kTimedOut, kClosed, kRefused };
  enum class After { kGoOn, kLinger, kClose };  // what the connection does next

  void spawn(boost::asio::awaitable<void> (HttpConnection::*work)());
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> serve_refusal();
  boost::asio::awaitable<After> serve_one();
  boost::asio::awaitable<Input> read_head(HttpRequestParser& parser);
  boost::asio::awaitable<void> receive(HttpRequestParser& parser);
  boost::asio::awaitable<Input> read_body(HttpRequestParser& parser, const std::shared_ptr<void>& ticket);
  boost::asio::awaitable<Input> continue_body(HttpRequestParser& parser);
  boost::asio::awaitable<Input> read_more();
  boost::asio::awaitable<After> answer(const HttpRequest& request);
  boost::asio::awaitable<void> send(std::string bytes);
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<After> serve_websocket(const HttpRequest& request);
  boost::asio::awaitable<After> serve_tunnel(const HttpRequest& request, Tunnel tunnel);
  boost::asio::awaitable<void> wait_for_wake();
  boost::asio::awaitable<void> end_watch();

  void feed(HttpRequestParser& parser);
  bool feed_body(HttpRequestParser& parser, const std::shared_ptr<void>& ticket);
  void refuse_body(uint64_t number, HttpResponse response);
  bool pass_over_body(HttpRequestParser& parser);
  void begin_exchange(const HttpHead& head);
  void begin_websocket(const HttpHead& head, WebSocketUpgrade upgrade);
  void answer_error(const HttpError& error, const HttpHeaders& headers = {});
  void give_up(const char* why);
  std::shared_ptr<HttpExchange> end_exchange(const HttpRequest& request, bool is_complete, int status_of_incomplete);
  void watch();
  void on_watched(bool has_failed, size_t num_bytes);
  void on_wake();
  void arm(Milliseconds timeout, bool is_write);
  void disarm();
  void close(bool reset);
  void finish(const std::exception_ptr& exception);

  boost::asio::ip::tcp::socket socket_;
  HttpServerContext& context_;
  boost::asio::steady_timer deadline_, wake_;
  uint64_t deadline_number_ = 0;  // of the current deadline; handlers of older ones do nothing
  std::string peer_;
  bool peer_is_loopback_ = false;
  std::array<char, 16 << 10> buffer_;
  std::string input_;  // bytes that were read and not yet parsed
  std::shared_ptr<HttpExchange> exchange_;
  std::optional<WebSocketConnection> websocket_;  // from its handshake to its end
  std::optional<TunnelConnection> tunnel_;        // from its 101 to its end
  class Incoming;
  Milliseconds linger_idle_timeout_{2000};
  uint64_t body_number_ = 0;                  // counts bodies, so that a late refusal of an older one does nothing
  std::optional<HttpResponse> body_refusal_;  // the answer to the current body, which is then not read on
  bool is_first_ = true, is_idle_ = false, is_stopped_ = false;
  bool timed_out_ = false, peer_has_closed_ = false, is_watching_ = false;
};

}  // namespace transept

#include "net/tunnel_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/as_tuple.h"

namespace transept {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

}  // namespace

class TunnelConnection::Impl final : public std::enable_shared_from_this<Impl> {
 public:
  Impl(tcp::socket& client, const HttpServerOptions& options, Tunnel tunnel)
      : client_(client),
        server_(client.get_executor()),
        options_(options),
        tunnel_(std::move(tunnel)),
        poll_(client.get_executor()),
        end_wake_(client.get_executor(), asio::steady_timer::time_point::max()) {}

  asio::awaitable<End> run(std::string from_client, bool client_has_ended);
  void end();

 private:
  // One of the two, and since when it waits for whom.
  struct Direction {
    tcp::socket& from;
    tcp::socket& to;
    std::optional<TimePoint> read_begin, write_begin;
    uint64_t num_bytes = 0;  // that were passed on
    bool has_ended = false;  // the end of `from` was read
  };

  void begin(std::string from_client);
  void spawn(asio::awaitable<void> work);
  asio::awaitable<void> pass(Direction& direction, std::string first_bytes);
  asio::awaitable<error_code> write(Direction& direction, std::string_view bytes);
  asio::awaitable<void> watch();
  void check(TimePoint now);
  void end_direction(const Direction& direction);
  void drop(bool reset);

  tcp::socket& client_;
  tcp::socket server_;
  const HttpServerOptions& options_;
  Tunnel tunnel_;
  asio::steady_timer poll_, end_wake_;
  Direction to_server_{.from = client_, .to = server_}, to_client_{.from = server_, .to = client_};
  std::optional<TimePoint> half_open_begin_;  // since when the server hears nothing any more
  int num_tasks_ = 0;                         // coroutines beside run()
  bool must_end_ = false, was_ended_ = false;
};

asio::awaitable<TunnelConnection::End> TunnelConnection::Impl::run(std::string from_client, bool client_has_ended) {
  to_server_.has_ended = client_has_ended;
  try {
    if (!must_end_) begin(std::move(from_client));
  } catch (const std::exception& exception) {
    log_error("a tunnel was given up: ", exception.what());
    drop(false);
  }
  while (num_tasks_ > 0) {
    [[maybe_unused]] const auto ignored = co_await end_wake_.async_wait(kAsTuple);
  }
  end();
  co_return End{
      .was_ended = was_ended_, .client_has_ended = to_server_.has_ended, .num_sent_bytes = to_client_.num_bytes};
}

void TunnelConnection::Impl::begin(std::string from_client) {
  server_.assign(tcp::v4(), tunnel_.socket.release());  // of either family: Asio does not look at a connected socket's
  spawn(pass(to_server_, std::move(from_client)));
  spawn(pass(to_client_, std::exchange(tunnel_.first_bytes, {})));
  spawn(watch());
}

void TunnelConnection::Impl::spawn(asio::awaitable<void> work) {
  ++num_tasks_;
  try {
    asio::co_spawn(client_.get_executor(), std::move(work),
                   [self = shared_from_this()](const std::exception_ptr& exception) {
                     if (exception) {
                       log_error("a tunnel was ended by an exception");
                       self->drop(false);
                     }
                     --self->num_tasks_;
                     self->end_wake_.cancel();
                   });
  } catch (...) {
    --num_tasks_;
    throw;
  }
}

asio::awaitable<void> TunnelConnection::Impl::pass(Direction& direction, std::string first_bytes) {
  std::array<char, kReadBytes> buffer;
  std::string_view bytes = first_bytes;
  error_code error;
  while (!error && !must_end_) {
    error = co_await write(direction, bytes);
    if (error || must_end_ || direction.has_ended) break;
    direction.read_begin = steady_now();
    size_t num_read = 0;
    std::tie(error, num_read) = co_await direction.from.async_read_some(asio::buffer(buffer), kAsTuple);
    direction.read_begin.reset();
    direction.has_ended = error == asio::error::eof;
    bytes = std::string_view(buffer.data(), num_read);
  }
  if (!must_end_) end_direction(direction);
}

asio::awaitable<error_code> TunnelConnection::Impl::write(Direction& direction, std::string_view bytes) {
  error_code error;
  while (!bytes.empty() && !error) {
    direction.write_begin = steady_now();
    size_t num_written = 0;
    std::tie(error, num_written) = co_await direction.to.async_write_some(asio::buffer(bytes), kAsTuple);
    direction.write_begin.reset();
    direction.num_bytes += num_written;
    bytes.remove_prefix(num_written);
  }
  co_return error;
}

void TunnelConnection::Impl::end_direction(const Direction& direction) {
  if (&direction == &to_client_) {
    was_ended_ = direction.has_ended;
    return was_ended_ ? end() : drop(false);
  }
  // What the server has said already still goes to the client.
  half_open_begin_ = steady_now();
  error_code ignored;
  server_.shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> TunnelConnection::Impl::watch() {
  const std::chrono::milliseconds shortest =
      std::min({options_.write_timeout, tunnel_.max_silence, tunnel_.max_half_open});
  const std::chrono::milliseconds interval =
      std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
  while (!must_end_) {
    poll_.expires_after(interval);
    [[maybe_unused]] const auto ignored = co_await poll_.async_wait(kAsTuple);
    if (!must_end_) check(steady_now());
  }
}

void TunnelConnection::Impl::check(TimePoint now) {
  const auto is_over = [now](const std::optional<TimePoint>& begin, std::chrono::milliseconds limit) {
    return begin.has_value() && now - *begin > limit;
  };
  if (is_over(to_client_.write_begin, options_.write_timeout)) return drop(true);
  if (is_over(to_client_.read_begin, tunnel_.max_silence) || is_over(half_open_begin_, tunnel_.max_half_open))
    drop(false);
}

void TunnelConnection::Impl::drop(bool reset) {
  error_code ignored;
  if (reset) client_.set_option(asio::socket_base::linger(true, 0), ignored);
  client_.close(ignored);
  end();
}

// Whatever waits for either side ends; the client's socket stays open.
void TunnelConnection::Impl::end() {
  must_end_ = true;
  error_code ignored;
  client_.cancel(ignored);
  server_.close(ignored);
  poll_.cancel();
}

TunnelConnection::TunnelConnection(tcp::socket& client, const HttpServerOptions& options, Tunnel tunnel)
    : impl_(std::make_shared<Impl>(client, options, std::move(tunnel))) {}

TunnelConnection::~TunnelConnection() = default;

asio::awaitable<TunnelConnection::End> TunnelConnection::run(std::string from_client, bool client_has_ended) {
  return impl_->run(std::move(from_client), client_has_ended);
}

void TunnelConnection::stop() { impl_->end(); }

}  // namespace transept

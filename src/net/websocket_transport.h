// The bytes below a WebSocket's frames, as Beast wants a stream: first those that came with the request's head, then
// the socket's. Counts what passes, for limits and the access log. Beast finds teardown, async_teardown and
// beast_close_socket beside it. Only websocket_connection.cc includes this. Not thread-safe: used on the socket's
// strand; borrows the socket.
//
// Patient: a read does not wait for the socket, but for wake(), which a ReadTicker calls when something has come. Then
// it takes all that is there in one call, and the kernel wakes no thread for less than kQuietBytes.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/role.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/websocket_frame_counter.h"

namespace transept {

class WebSocketTransport final {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;
  using next_layer_type = Socket;
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kQuietBytes = 16 << 10;

  // `on_patient` is called whenever a read begins to wait for wake().
  WebSocketTransport(Socket& socket, std::string leftover, std::function<void()> on_patient)
      : socket_(socket),
        unread_(std::move(leftover)),
        on_patient_(std::move(on_patient)),
        arrival_(socket.get_executor(), Time::max()) {}

  executor_type get_executor() noexcept { return socket_.get_executor(); }
  Socket& next_layer() noexcept { return socket_; }
  const Socket& next_layer() const noexcept { return socket_; }

  uint64_t num_read_bytes() const { return num_read_bytes_; }
  uint64_t num_sent_bytes() const { return num_sent_bytes_; }
  const WebSocketFrameCounter& frames() const { return frames_; }
  // Since when the client has taken no byte of what is being written; nullopt: nothing is.
  std::optional<Time> write_begin() const { return write_begin_; }

  // Of the reads that begin from here on; a read that waits for wake() waits for the socket if it is false.
  void set_patient(bool is_patient) {
    is_patient_ = is_patient;
    if (is_patient) return;
    set_quiet(false);
    wake();
  }
  // Has a read that waits patiently look at the socket.
  void wake() { arrival_.cancel(); }

  // With handlers alone, which are all that Beast has: no other completion tokens.
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    boost::asio::async_compose<Handler, void(boost::system::error_code, size_t)>(Read<Buffers>{*this, buffers}, handler,
                                                                                 socket_);
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    boost::asio::async_compose<Handler, void(boost::system::error_code, size_t)>(Write<Buffers>{*this, buffers},
                                                                                 handler, socket_);
  }

 private:
  using error_code = boost::system::error_code;

  template <class Buffers>
  struct Read {
    enum class State : uint8_t { kBegin, kUnread, kSocket, kArrival };
    WebSocketTransport& transport;
    Buffers buffers;
    State state = State::kBegin;

    template <class Self>
    void operator()(Self& self, const error_code& error = {}, size_t num_bytes = 0) {
      switch (state) {
        case State::kBegin:
          if (transport.num_unread() > 0) {
            state = State::kUnread;
            return boost::asio::post(transport.get_executor(), std::move(self));
          }
          return wait(self);
        case State::kUnread: return take(self, {});
        case State::kSocket: transport.note_read(buffers, num_bytes); return self.complete(error, num_bytes);
        case State::kArrival: return look(self);
      }
    }

    template <class Self>
    void wait(Self& self) {
      if (transport.is_patient_ && transport.socket_.is_open()) {
        state = State::kArrival;
        transport.set_quiet(true);
        transport.on_patient_();
        return transport.arrival_.async_wait(std::move(self));
      }
      state = State::kSocket;
      const Buffers into = buffers;  // `self` holds this object, and moves
      transport.socket_.async_read_some(into, std::move(self));
    }

    template <class Self>
    void look(Self& self) {
      if (!transport.is_patient_ || !transport.socket_.is_open()) return wait(self);
      const error_code error = transport.receive();
      if (error == boost::asio::error::would_block) return wait(self);
      take(self, error);
    }

    template <class Self>
    void take(Self& self, const error_code& error) {
      const size_t count = boost::asio::buffer_copy(buffers, boost::asio::buffer(transport.unread()));
      transport.unread_begin_ += count;
      transport.note_read(buffers, count);
      self.complete(error, count);
    }
  };

  template <class Buffers>
  struct Write {
    WebSocketTransport& transport;
    Buffers buffers;
    bool has_begun = false;

    template <class Self>
    void operator()(Self& self, const error_code& error = {}, size_t num_bytes = 0) {
      if (!std::exchange(has_begun, true)) {
        transport.write_begin_ = std::chrono::steady_clock::now();
        const Buffers from = buffers;  // `self` holds this object, and moves
        return transport.socket_.async_write_some(from, std::move(self));
      }
      transport.write_begin_.reset();
      transport.num_sent_bytes_ += num_bytes;
      self.complete(error, num_bytes);
    }
  };

  size_t num_unread() const { return unread_.size() - unread_begin_; }
  std::string_view unread() const { return std::string_view(unread_).substr(unread_begin_); }

  // Takes what has come, without waiting. REQUIRES: nothing is unread.
  error_code receive() {
    // One for all connections: memory that is not in a cache costs more than the copy.
    thread_local std::array<char, kQuietBytes> bytes;
    const ssize_t count = ::recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    const int failure = errno;
    unread_.assign(bytes.data(), count > 0 ? static_cast<size_t>(count) : 0);
    unread_begin_ = 0;
    if (count > 0) return {};
    if (count == 0) return boost::asio::error::eof;
    if (failure == EAGAIN || failure == EWOULDBLOCK || failure == EINTR) return boost::asio::error::would_block;
    return {failure, boost::asio::error::get_system_category()};
  }

  void set_quiet(bool is_quiet) {
    if (std::exchange(is_quiet_, is_quiet) == is_quiet) return;
    const int bytes = is_quiet ? kQuietBytes : 1;
    // If it fails, packets wake a thread as before.
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
  }

  template <class Buffers>
  void note_read(const Buffers& buffers, size_t num_bytes) {
    num_read_bytes_ += num_bytes;
    for (auto buffer = boost::asio::buffer_sequence_begin(buffers);
         num_bytes > 0 && buffer != boost::asio::buffer_sequence_end(buffers); ++buffer) {
      const boost::asio::const_buffer bytes(*buffer);
      const size_t count = std::min(num_bytes, bytes.size());
      frames_.feed({static_cast<const char*>(bytes.data()), count});
      num_bytes -= count;
    }
  }

  Socket& socket_;
  std::string unread_;  // from byte unread_begin_ on
  size_t unread_begin_ = 0;
  bool is_patient_ = false, is_quiet_ = false;
  const std::function<void()> on_patient_;
  boost::asio::steady_timer arrival_;  // never expires
  WebSocketFrameCounter frames_;
  uint64_t num_read_bytes_ = 0, num_sent_bytes_ = 0;
  std::optional<Time> write_begin_;
};

// Ends the sending side alone. What the client still sends, HttpConnection reads, within its limits.
inline void teardown(boost::beast::role_type, WebSocketTransport& transport, boost::system::error_code& error) {
  transport.next_layer().shutdown(WebSocketTransport::Socket::shutdown_send, error);
}

template <class Handler>
void async_teardown(boost::beast::role_type role, WebSocketTransport& transport, Handler&& handler) {
  boost::system::error_code error;
  teardown(role, transport, error);
  boost::asio::post(transport.get_executor(),
                    [handler = std::forward<Handler>(handler), error]() mutable { std::move(handler)(error); });
}

}  // namespace transept

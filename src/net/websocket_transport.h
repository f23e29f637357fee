// The bytes below a WebSocket's frames, as Beast wants a stream: first those that came with the request's head, then
// the socket's. Counts what passes, for limits and the access log. Beast finds teardown, async_teardown and
// beast_close_socket beside it. Only websocket_connection.cc includes this. Not thread-safe: used on the socket's
// strand; borrows the socket.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/role.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "net/websocket_frame_counter.h"

namespace transept {

class WebSocketTransport final {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;
  using next_layer_type = Socket;
  using Time = std::chrono::steady_clock::time_point;

  WebSocketTransport(Socket& socket, std::string leftover) : socket_(socket), leftover_(std::move(leftover)) {}

  executor_type get_executor() noexcept { return socket_.get_executor(); }
  Socket& next_layer() noexcept { return socket_; }
  const Socket& next_layer() const noexcept { return socket_; }

  uint64_t num_read_bytes() const { return num_read_bytes_; }
  uint64_t num_sent_bytes() const { return num_sent_bytes_; }
  const WebSocketFrameCounter& frames() const { return frames_; }
  // Since when the client has taken no byte of what is being written; nullopt: nothing is.
  std::optional<Time> write_begin() const { return write_begin_; }

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
    WebSocketTransport& transport;
    Buffers buffers;
    size_t num_left_over = 0;
    bool has_begun = false;

    template <class Self>
    void operator()(Self& self, const error_code& error = {}, size_t num_bytes = 0) {
      if (!std::exchange(has_begun, true)) {
        std::string& leftover = transport.leftover_;
        if (leftover.empty()) {
          const Buffers into = buffers;  // `self` holds this object, and moves
          return transport.socket_.async_read_some(into, std::move(self));
        }
        num_left_over = boost::asio::buffer_copy(buffers, boost::asio::buffer(leftover));
        leftover.erase(0, num_left_over);
        return boost::asio::post(transport.get_executor(), std::move(self));
      }
      num_bytes += num_left_over;
      transport.note_read(buffers, num_bytes);
      self.complete(error, num_bytes);
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
  std::string leftover_;
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

// The client's side of a connection, TCP or a Unix socket: every call ends by its deadline, except for the lookup of a
// name. Owns the descriptor. Not thread-safe, but for shut_down().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace transept {

class ClientSocket final {
 public:
  ClientSocket() = default;
  ~ClientSocket() { close(); }
  ClientSocket(ClientSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ClientSocket& operator=(ClientSocket&&) = delete;

  // Closes the old connection, then tries the addresses of `host` in order until one accepts. Errors name host and
  // port: kUnavailable (the last address's reason), kDeadlineExceeded. The deadline does not bound the lookup of the
  // name.
  Status connect(const std::string& host, uint16_t port, TimePoint deadline);
  // The same to a Unix socket. Errors name the path; kInvalidArgument: it is too long.
  Status connect_unix(const std::string& path, TimePoint deadline);
  bool is_open() const { return fd_ >= 0; }
  // Whether the socket is open, and the peer has neither closed it nor sent bytes that are unread.
  bool is_idle() const;

  // Sends `head`, then `body`. True: all bytes were sent. False: the peer sent bytes or closed first; the rest was not
  // sent, and read() gives the peer's bytes. Errors: kUnavailable, kDeadlineExceeded. REQUIRES: is_open().
  StatusOr<bool> send(std::string_view head, std::string_view body, TimePoint deadline);
  // Sends all of it, whatever the peer sends meanwhile. Errors: kUnavailable, kDeadlineExceeded. REQUIRES: is_open().
  Status write(std::string_view bytes, TimePoint deadline);
  // Reads at least one byte; 0: the peer has ended its side. Errors: kUnavailable (reset), kDeadlineExceeded.
  // REQUIRES: is_open().
  StatusOr<size_t> read(std::span<char> to, TimePoint deadline);
  // Ends both sides: a call that waits returns. Another thread may call it while the socket stays open.
  void shut_down() const;
  void close();
  // Gives the descriptor away (non-blocking; -1: none), which the caller closes.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace transept

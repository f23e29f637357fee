// The client's side of a TCP connection: every call ends by its deadline, except for the lookup of a name. Owns the
// descriptor. Not thread-safe.
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
  bool is_open() const { return fd_ >= 0; }
  // Whether the socket is open, and the peer has neither closed it nor sent bytes that are unread.
  bool is_idle() const;

  // Sends `head`, then `body`. True: all bytes were sent. False: the peer sent bytes or closed first; the rest was not
  // sent, and read() gives the peer's bytes. Errors: kUnavailable, kDeadlineExceeded. REQUIRES: is_open().
  StatusOr<bool> send(std::string_view head, std::string_view body, TimePoint deadline);
  // Reads at least one byte; 0: the peer has ended its side. Errors: kUnavailable (reset), kDeadlineExceeded.
  // REQUIRES: is_open().
  StatusOr<size_t> read(std::span<char> to, TimePoint deadline);
  void close();

 private:
  int fd_ = -1;
};

}  // namespace transept

// A TCP connection as a client sees it: every call ends by its deadline. Owns the descriptor. Not thread-safe.
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

  // The first of the host's addresses that answers. Errors: kUnavailable (names host and port), kDeadlineExceeded.
  // (Looking a name up is the system's, and takes the system's time.)
  Status connect(const std::string& host, uint16_t port, TimePoint deadline);
  bool is_open() const { return fd_ >= 0; }
  // Open, and the other side neither closed it nor said something unasked.
  bool is_idle() const;

  // All of both: true. False: the other side spoke or closed first, and what it said is to be read; the rest was not
  // sent. Errors: kUnavailable, kDeadlineExceeded.
  StatusOr<bool> send(std::string_view head, std::string_view body, TimePoint deadline);
  // At least one byte; 0: the other side is done. Errors: kUnavailable (reset), kDeadlineExceeded.
  StatusOr<size_t> read(std::span<char> to, TimePoint deadline);
  void close();

 private:
  int fd_ = -1;
};

}  // namespace transept

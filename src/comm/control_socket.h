// One end of a connection between processes of a group: frames in, frames out. Owns the descriptor. One thread reads
// and one writes at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/control_frame.h"

namespace transept {

class ControlSocket final {
 public:
  ControlSocket() = default;
  // Takes over a connected, non-blocking descriptor.
  explicit ControlSocket(int fd);
  ~ControlSocket() { close(); }
  ControlSocket(ControlSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), read_(std::move(other.read_)), is_ended_(other.is_ended_) {}
  ControlSocket& operator=(ControlSocket&& other) noexcept;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

  // Errors: kUnavailable, the connection is lost; kDeadlineExceeded.
  Status send(const ControlFrame& frame, TimePoint deadline) const;
  // The next frame that is here; never waits. nullopt: there is none yet. Errors: kUnavailable, the other has closed;
  // kInvalidArgument, it has sent something else than frames of at most `max_bytes`.
  StatusOr<std::optional<ControlFrame>> poll(size_t max_bytes);
  // The next frame. Errors: those of poll(); kDeadlineExceeded.
  StatusOr<ControlFrame> receive(TimePoint deadline);

  // The address of this end, and of the other, as text without a port; "": unknown.
  std::string local_address() const;
  std::string remote_address() const;

 private:
  int fd_ = -1;
  std::vector<std::byte> read_;
  bool is_ended_ = false;
};

// A socket that listens, and its port.
class ControlListener final {
 public:
  // Resolves `host`, and binds its first address; port 0: any. Errors: the address is neither of this machine's
  // loopback nor private; it is none of this machine's, or its port is taken: name host and port.
  static StatusOr<ControlListener> open(const std::string& host, uint16_t port);
  ~ControlListener();
  ControlListener(ControlListener&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}
  ControlListener& operator=(ControlListener&&) = delete;

  int fd() const { return fd_; }
  uint16_t port() const { return port_; }
  // The next connection; nullopt: there is none. Never waits.
  std::optional<ControlSocket> accept() const;

 private:
  ControlListener(int fd, uint16_t port) : fd_(fd), port_(port) {}

  int fd_;
  uint16_t port_;
};

// Whether an address is one that ranks speak over, which do not encrypt: loopback, link-local, or private (RFC 1918,
// RFC 6598, RFC 4193).
bool is_private_address(const std::string& text);

}  // namespace transept

#include "comm/control_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

namespace transept {
namespace {

constexpr int kBacklog = 128;
constexpr int kSecondsToFirstProbe = 10, kSecondsBetweenProbes = 5, kNumProbes = 3;  // of a host that has gone silent

Status lost(const char* what, int error) { return absl::UnavailableError(str_cat(what, ": ", std::strerror(error))); }

Status wait_for(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd polled{.fd = fd, .events = events, .revents = 0};
    const int num = ::poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (num > 0) return ok_status();
    if (num < 0 && errno != EINTR) return lost("poll", errno);
    if (num == 0 && left <= 0) return absl::DeadlineExceededError("no answer in time");
  }
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = address.ss_family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  return ::inet_ntop(address.ss_family, bytes, text, sizeof text) == nullptr ? "" : text;
}

bool is_private(const in_addr& address) {
  const uint32_t host = ntohl(address.s_addr);
  const auto is_in = [&](uint32_t net, int bits) { return host >> (32 - bits) == net >> (32 - bits); };
  return is_in(0x7F000000, 8) || is_in(0x0A000000, 8) || is_in(0xAC100000, 12) || is_in(0xC0A80000, 16) ||
         is_in(0xA9FE0000, 16) || is_in(0x64400000, 10);
}

bool is_private(const in6_addr& address) {
  const uint8_t* bytes = address.s6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_LINKLOCAL(&address) || (bytes[0] & 0xFE) == 0xFC;
}

void set_options(int fd) {
  const auto set = [&](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSecondsToFirstProbe);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kSecondsBetweenProbes);
  set(IPPROTO_TCP, TCP_KEEPCNT, kNumProbes);
}

}  // namespace

bool is_private_address(const std::string& text) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return is_private(four);
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 && is_private(six);
}

// ---- ControlSocket

ControlSocket::ControlSocket(int fd) : fd_(fd) { set_options(fd_); }

ControlSocket& ControlSocket::operator=(ControlSocket&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  read_ = std::move(other.read_);
  is_ended_ = other.is_ended_;
  return *this;
}

void ControlSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status ControlSocket::send(const ControlFrame& frame, TimePoint deadline) const {
  const std::vector<std::byte> bytes = encode_frame(frame);
  for (size_t num_sent = 0; num_sent < bytes.size();) {
    const ssize_t count = ::send(fd_, bytes.data() + num_sent, bytes.size() - num_sent, MSG_NOSIGNAL);
    if (count >= 0) {
      num_sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(wait_for(fd_, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return lost("the connection was lost", errno);
    }
  }
  return ok_status();
}

StatusOr<std::optional<ControlFrame>> ControlSocket::poll(size_t max_bytes) {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<ControlFrame> frame, take_frame(read_, max_bytes));
    if (frame.has_value()) return frame;
    if (is_ended_) return absl::UnavailableError("the connection was closed");
    std::array<std::byte, 4096> some;
    const ssize_t count = ::recv(fd_, some.data(), some.size(), 0);
    if (count > 0) {
      read_.insert(read_.end(), some.begin(), some.begin() + count);
    } else if (count == 0) {
      is_ended_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return std::nullopt;
    } else if (errno != EINTR) {
      return lost("the connection was lost", errno);
    }
  }
}

StatusOr<ControlFrame> ControlSocket::receive(TimePoint deadline) {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<ControlFrame> frame, poll(kMaxControlFrameBytes));
    if (frame.has_value()) return *std::move(frame);
    RETURN_IF_ERROR(wait_for(fd_, POLLIN, deadline));
  }
}

std::string ControlSocket::local_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address_text(address) : "";
}

std::string ControlSocket::remote_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address_text(address) : "";
}

// ---- ControlListener

StatusOr<ControlListener> ControlListener::open(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string place = str_cat(host, " port ", port);
  if (const int error = ::getaddrinfo(host.c_str(), str_cat(port).c_str(), &hints, &found); error != 0) {
    return invalid_argument(place, ": ", ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, std::min<size_t>(found->ai_addrlen, sizeof address));
  const std::string text = address_text(address);
  if (!is_private_address(text)) {
    return invalid_argument(place, ": ", text, " is neither a private address nor loopback: ranks do not encrypt");
  }
  const int fd = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return lost("socket", errno);
  ControlListener listener(fd, port);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = found->ai_addrlen;
  if (::bind(fd, found->ai_addr, size) != 0 || ::listen(fd, kBacklog) != 0) {
    return invalid_argument(place, ": the first rank cannot listen there: ", std::strerror(errno));
  }
  size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return lost("getsockname", errno);
  listener.port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                       : reinterpret_cast<sockaddr_in&>(address).sin_port);
  return listener;
}

ControlListener::~ControlListener() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<ControlSocket> ControlListener::accept() const {
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return std::nullopt;
  return ControlSocket(fd);
}

}  // namespace transept

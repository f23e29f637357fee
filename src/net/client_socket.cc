#include "net/client_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

namespace transept {
namespace {

Status lost(int error) { return absl::UnavailableError(str_cat("the connection was lost: ", std::strerror(error))); }

// What happened on the descriptor.
StatusOr<short> wait_for(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now()).count();
    pollfd polled{fd, events, 0};
    const int num = ::poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (num > 0) return polled.revents;
    if (num < 0 && errno != EINTR) return lost(errno);
    if (num == 0 && left <= 0) return absl::DeadlineExceededError("no answer in time");
  }
}

// A connected descriptor, or what went wrong with this address.
StatusOr<int> connect_to(const sockaddr* address, socklen_t address_bytes, int protocol, TimePoint deadline) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  if (fd < 0) return lost(errno);
  int error = 0;
  Status status;
  if (::connect(fd, address, address_bytes) != 0) error = errno;
  if (error == EINPROGRESS || error == EINTR) {
    status = wait_for(fd, POLLOUT, deadline).status();
    socklen_t size = sizeof error;
    if (status.ok() && ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (status.ok() && error != 0) status = absl::UnavailableError(std::strerror(error));
  if (!status.ok()) {
    ::close(fd);
    return status;
  }
  return fd;
}

}  // namespace

Status ClientSocket::connect(const std::string& host, uint16_t port, TimePoint deadline) {
  close();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string place = str_cat("cannot connect to ", host, " port ", port);
  if (const int error = ::getaddrinfo(host.c_str(), str_cat(port).c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(str_cat(place, ": ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  Status status = absl::UnavailableError("it has no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const StatusOr<int> fd = connect_to(address->ai_addr, address->ai_addrlen, address->ai_protocol, deadline);
    if (fd.ok()) {
      fd_ = *fd;
      const int on = 1;
      ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return ok_status();
    }
    status = fd.status();
    if (absl::IsDeadlineExceeded(status)) break;
  }
  return with_prefix(status, place);
}

Status ClientSocket::connect_unix(const std::string& path, TimePoint deadline) {
  close();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr size_t kMaxPathBytes = sizeof address.sun_path - 1;
  if (path.size() > kMaxPathBytes) {
    return invalid_argument(path, ": the path has ", path.size(), " bytes; sockets allow ", kMaxPathBytes);
  }
  path.copy(address.sun_path, kMaxPathBytes);
  const StatusOr<int> fd = connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, 0, deadline);
  if (!fd.ok()) return with_prefix(fd.status(), str_cat("cannot connect to ", path));
  fd_ = *fd;
  return ok_status();
}

bool ClientSocket::is_idle() const {
  if (fd_ < 0) return false;
  pollfd polled{fd_, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

StatusOr<bool> ClientSocket::send(std::string_view head, std::string_view body, TimePoint deadline) {
  while (!head.empty() || !body.empty()) {
    ASSIGN_OR_RETURN(const short events, wait_for(fd_, POLLIN | POLLOUT, deadline));
    if ((events & ~POLLOUT) != 0) return false;
    std::array<iovec, 2> parts = {iovec{const_cast<char*>(head.data()), head.size()},
                                  iovec{const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t num = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (num < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      if (errno == EPIPE || errno == ECONNRESET) return false;
      return lost(errno);
    }
    const size_t of_head = std::min(head.size(), static_cast<size_t>(num));
    head.remove_prefix(of_head);
    body.remove_prefix(static_cast<size_t>(num) - of_head);
  }
  return true;
}

Status ClientSocket::write(std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    RETURN_IF_ERROR(wait_for(fd_, POLLOUT, deadline).status());
    const ssize_t num = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (num < 0 && errno != EINTR && errno != EAGAIN) return lost(errno);
    if (num > 0) bytes.remove_prefix(static_cast<size_t>(num));
  }
  return ok_status();
}

StatusOr<size_t> ClientSocket::read(std::span<char> to, TimePoint deadline) {
  while (true) {
    RETURN_IF_ERROR(wait_for(fd_, POLLIN, deadline).status());
    const ssize_t num = ::recv(fd_, to.data(), to.size(), 0);
    if (num >= 0) return static_cast<size_t>(num);
    if (errno != EINTR && errno != EAGAIN) return lost(errno);
  }
}

void ClientSocket::shut_down() const { ::shutdown(fd_, SHUT_RDWR); }

void ClientSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace transept

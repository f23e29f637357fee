// For tests of clients: a server on a port of its own that says exactly the bytes it is told to, right or wrong. Each
// connection has a thread, which runs the test's function until it returns; the connection is closed behind it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace transept::testing {

class FakeHttpServer final {
 public:
  class Connection {
   public:
    Connection(int fd, int number, const std::atomic<bool>& is_stopped)
        : fd_(fd), number_(number), is_stopped_(is_stopped) {}

    int number() const { return number_; }  // from 0, in the order of arrival

    // Head and body (of Content-Length) of the next request as they came; nullopt: the client has gone.
    std::optional<std::string> read_request() {
      while (true) {
        const size_t head = in_.find("\r\n\r\n");
        if (head != std::string::npos) {
          const size_t at = in_.find("Content-Length: ");
          const size_t body =
              at < head ? static_cast<size_t>(std::strtoull(in_.c_str() + at + 16, nullptr, 10)) : size_t{0};
          const size_t size = head + 4 + body;
          if (in_.size() >= size) {
            std::string request = in_.substr(0, size);
            in_.erase(0, size);
            return request;
          }
        }
        if (!read_more()) return std::nullopt;
      }
    }

    void send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t num = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (num <= 0) return;
        bytes.remove_prefix(static_cast<size_t>(num));
      }
    }

    // A whole answer with its length.
    void respond(int status, std::string_view body, std::string_view type = "application/json") const {
      send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    }

    // Until the client closes, or the server is taken down.
    void wait_until_gone() {
      while (read_more()) {
      }
    }

   private:
    bool read_more() {
      pollfd polled{fd_, POLLIN, 0};
      while (::poll(&polled, 1, 10) == 0) {
        if (is_stopped_) return false;
      }
      char bytes[4096];
      const ssize_t num = ::recv(fd_, bytes, sizeof bytes, 0);
      if (num <= 0) return false;
      in_.append(bytes, static_cast<size_t>(num));
      return true;
    }

    int fd_;
    int number_;
    const std::atomic<bool>& is_stopped_;
    std::string in_;
  };
  using Handler = std::function<void(Connection&)>;

  explicit FakeHttpServer(Handler handler) : handler_(std::move(handler)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, generic, size) != 0 || ::listen(fd_, 1024) != 0 || ::getsockname(fd_, generic, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~FakeHttpServer() {
    is_stopped_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(fd_);
  }
  FakeHttpServer(const FakeHttpServer&) = delete;
  FakeHttpServer& operator=(const FakeHttpServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int num_connections() const { return num_connections_; }

 private:
  void accept_all() {
    while (!is_stopped_) {
      pollfd polled{fd_, POLLIN, 0};
      if (::poll(&polled, 1, 10) <= 0) continue;
      const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      threads_.emplace_back([this, fd, number = num_connections_++] {
        Connection connection(fd, number, is_stopped_);
        handler_(connection);
        ::close(fd);
      });
    }
  }

  Handler handler_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int> num_connections_{0};
  std::vector<std::thread> threads_;  // the acceptor's, and after its end the destructor's
  std::thread acceptor_;
};

}  // namespace transept::testing

// For tests: a TCP port of 127.0.0.1 behind which a Unix socket is, some time away in either direction.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace transept::testing {

class SlowRelay final {
 public:
  // `delay`: of each byte, one way.
  SlowRelay(std::string path, Duration delay) : path_(std::move(path)), delay_(delay) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept(); });
  }
  ~SlowRelay() {
    is_stopped_ = true;
    acceptor_.join();
    for (std::thread& relay : relays_) relay.join();
    ::close(listener_);
  }
  SlowRelay(const SlowRelay&) = delete;
  SlowRelay& operator=(const SlowRelay&) = delete;

  uint16_t port() const { return port_; }

 private:
  struct Packet {
    TimePoint due;
    std::string bytes;
  };

  void accept() {
    while (!is_stopped_) {
      pollfd polled{listener_, POLLIN, 0};
      if (::poll(&polled, 1, 10) <= 0) continue;
      const int near = ::accept(listener_, nullptr, nullptr);
      const int far = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path_.copy(address.sun_path, sizeof address.sun_path - 1);
      EXPECT_EQ(::connect(far, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      relays_.emplace_back([this, near, far] { relay(near, far); });
    }
  }

  void relay(int near, int far) {
    const std::array<int, 2> ends = {near, far};
    std::array<std::deque<Packet>, 2> to;  // ends[i]
    bool is_open = true;
    while (is_open && !is_stopped_) {
      std::array<pollfd, 2> polled = {pollfd{near, POLLIN, 0}, pollfd{far, POLLIN, 0}};
      ::poll(polled.data(), polled.size(), 1);
      const TimePoint now = std::chrono::steady_clock::now();
      for (size_t i = 0; i < 2; ++i) {
        if (polled[i].revents != 0) is_open = is_open && take(ends[i], now + delay_, to[1 - i]);
        for (; !to[i].empty() && to[i].front().due <= now; to[i].pop_front()) {
          (void)::send(ends[i], to[i].front().bytes.data(), to[i].front().bytes.size(), MSG_NOSIGNAL);
        }
      }
    }
    ::close(near);
    ::close(far);
  }

  static bool take(int end, TimePoint due, std::deque<Packet>& packets) {
    std::string bytes(size_t{1} << 16, '\0');
    const ssize_t size = ::recv(end, bytes.data(), bytes.size(), 0);
    if (size <= 0) return false;
    bytes.resize(static_cast<size_t>(size));
    packets.push_back({due, std::move(bytes)});
    return true;
  }

  const std::string path_;
  const Duration delay_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> is_stopped_{false};
  std::vector<std::thread> relays_;  // of the acceptor's thread, until it has ended
  std::thread acceptor_;
};

}  // namespace transept::testing

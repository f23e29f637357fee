// Looks at sockets every kTick, instead of being woken by each packet: of many that send a little often, as microphones
// do, one wake-up reads all. Beside it the kernel must be told to keep quiet (SO_RCVLOWAT). Owned by an HttpServer and
// its connections; thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"

namespace transept {

class ReadTicker final : public std::enable_shared_from_this<ReadTicker> {
 public:
  static constexpr auto kTick = std::chrono::milliseconds(20);

  // One socket that is looked at.
  class Watch final {
   public:
    // `on_arrival` runs on a thread of the ticker's executor, not on the socket's strand, and must be quick.
    Watch(int socket, std::function<void()> on_arrival) : socket_(socket), on_arrival_(std::move(on_arrival)) {}

    // Has on_arrival called at the next tick at which the socket has bytes, has ended, or has failed: once. A call may
    // be on its way when disarm() returns. Thread-safe.
    void arm() { is_armed_ = true; }
    void disarm() { is_armed_ = false; }

   private:
    friend class ReadTicker;
    const int socket_;
    const std::function<void()> on_arrival_;
    std::atomic<bool> is_armed_{false};
  };

  explicit ReadTicker(const boost::asio::any_io_executor& executor) : timer_(executor) {}
  ReadTicker(const ReadTicker&) = delete;
  ReadTicker& operator=(const ReadTicker&) = delete;

  // Looks at it until remove(). The descriptor may be closed before that: then on_arrival may be called for another's.
  void add(std::shared_ptr<Watch> watch);
  void remove(const std::shared_ptr<Watch>& watch);

 private:
  void wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void tick();

  Mutex mutex_;
  boost::asio::steady_timer timer_ ABSL_GUARDED_BY(mutex_);
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;  // for the timer
  std::vector<std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept

#include "net/read_ticker.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace transept {
namespace {

bool has_news(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace

void ReadTicker::add(std::shared_ptr<Watch> watch) {
  const MutexLock lock(mutex_);
  watches_.push_back(std::move(watch));
  if (!is_waiting_) wait();
}

void ReadTicker::remove(const std::shared_ptr<Watch>& watch) {
  watch->disarm();
  const MutexLock lock(mutex_);
  std::erase(watches_, watch);
}

void ReadTicker::wait() {
  is_waiting_ = true;
  timer_.expires_after(kTick);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) { self->tick(); });
}

void ReadTicker::tick() {
  std::vector<std::shared_ptr<Watch>> arrived;  // their functions may call remove()
  {
    const MutexLock lock(mutex_);
    is_waiting_ = false;
    if (watches_.empty()) return;
    for (const std::shared_ptr<Watch>& watch : watches_) {
      if (watch->is_armed_ && has_news(watch->socket_) && watch->is_armed_.exchange(false)) arrived.push_back(watch);
    }
    wait();
  }
  for (const std::shared_ptr<Watch>& watch : arrived) watch->on_arrival_();
}

}  // namespace transept

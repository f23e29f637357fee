#include "apps/ready_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace transept {

StatusOr<std::unique_ptr<ReadyQueue>> ReadyQueue::create() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return resource_exhausted("eventfd: ", std::strerror(errno));
  return std::unique_ptr<ReadyQueue>(new ReadyQueue(fd));
}

ReadyQueue::~ReadyQueue() { ::close(event_fd_); }

void ReadyQueue::push(size_t index) {
  const MutexLock lock(mutex_);
  indices_.push_back(index);
  if (indices_.size() == 1) ::eventfd_write(event_fd_, 1);  // the only one: cannot be full
}

std::vector<size_t> ReadyQueue::take() {
  const MutexLock lock(mutex_);
  eventfd_t count = 0;
  if (!indices_.empty()) ::eventfd_read(event_fd_, &count);
  return std::exchange(indices_, {});
}

void ReadyQueue::wait(int fd) {
  pollfd waited[2] = {{event_fd_, POLLIN, 0}, {fd, POLLIN, 0}};  // a negative descriptor is passed over
  ::poll(waited, 2, 100);
}

}  // namespace transept

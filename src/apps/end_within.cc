#include "apps/end_within.h"

#include <unistd.h>

#include <utility>

namespace transept {

EndWithin::EndWithin(std::chrono::milliseconds timeout, std::function<int()> last_words)
    : last_words_(std::move(last_words)),
      thread_([this, end = std::chrono::steady_clock::now() + timeout] { run(end); }) {}

EndWithin::~EndWithin() {
  {
    const MutexLock lock(mutex_);
    is_in_time_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void EndWithin::run(std::chrono::steady_clock::time_point end) {
  {
    const MutexLock lock(mutex_);
    while (!is_in_time_) {
      if (!changed_.wait_until(mutex_, end) && std::chrono::steady_clock::now() >= end) break;
    }
    if (is_in_time_) return;
  }
  ::_exit(last_words_());
}

}  // namespace transept

#include "base/shared_processor.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace transept {

SharedProcessor::Duration SharedProcessor::rest_at(const Times& times) {
  if (!window_.has_value()) window_ = times;
  if (const Duration length = times.now - window_->now; length >= kWindow) {
    const auto delay = static_cast<double>((times.run_delay - window_->run_delay).count());
    num_waited_ = delay >= kDelayShare * static_cast<double>(length.count()) ? num_waited_ + 1 : 0;
    if (num_waited_ >= (is_shared_ ? 1 : kWindowsToBegin)) shared_until_ = times.now + kMemory;
    window_ = times;
  }
  const bool was_shared = is_shared_;
  is_shared_ = times.now < shared_until_;
  if (!is_shared_) return Duration::zero();
  if (!was_shared) rested_at_ = times.used;
  if (times.used - rested_at_ < kWork) return Duration::zero();
  rested_at_ = times.used;
  return kRest;
}

ThreadTimes::ThreadTimes() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

ThreadTimes::~ThreadTimes() {
  if (file_ >= 0) close(file_);
}

SharedProcessor::Times ThreadTimes::read() const {
  SharedProcessor::Times times;
  times.now = std::chrono::steady_clock::now().time_since_epoch();
  // Not the file's first number, which is as old as the scheduler's last tick.
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  times.used = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  if (file_ < 0) return times;
  char text[64];  // "nanoseconds used, nanoseconds waited, times it ran"
  const ssize_t length = pread(file_, text, sizeof text, 0);
  const std::string_view line(text, static_cast<size_t>(std::max<ssize_t>(length, 0)));
  const size_t space = line.find(' ');
  int64_t delay = 0;
  if (space == std::string_view::npos) return times;
  if (std::from_chars(line.data() + space + 1, line.data() + line.size(), delay).ec != std::errc()) return times;
  times.run_delay = std::chrono::nanoseconds(delay);
  return times;
}

}  // namespace transept

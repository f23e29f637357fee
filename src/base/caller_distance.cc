#include "base/caller_distance.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace transept {

void CallerDistance::take(Duration now, int num_running) {
  constexpr double kWeight = 1.0 / 8;
  mean_ = num_looks_ == 0 ? num_running : mean_ + (num_running - mean_) * kWeight;
  num_looks_ = std::min(num_looks_ + 1, kLooksToBegin);
  looked_at_ = now;
}

RunningThreads::RunningThreads() : file_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)) {}

RunningThreads::~RunningThreads() {
  if (file_ >= 0) close(file_);
}

int RunningThreads::count() const {
  if (file_ < 0) return 0;
  char text[128];  // "1.06 0.79 0.75 3/457 8123": of 457 threads, 3 run or want to
  const ssize_t length = pread(file_, text, sizeof text, 0);
  const std::string_view line(text, static_cast<size_t>(std::max<ssize_t>(length, 0)));
  const size_t slash = line.find('/');
  if (slash == std::string_view::npos) return 0;
  const size_t space = line.rfind(' ', slash);
  int count = 0;
  if (space == std::string_view::npos) return 0;
  const auto end = line.data() + slash;
  return std::from_chars(line.data() + space + 1, end, count).ptr == end ? count : 0;
}

}  // namespace transept

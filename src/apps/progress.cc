#include "apps/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int kBarWidth = 24;

}  // namespace

Progress::Progress(std::string_view what) : what_(what), is_terminal_(isatty(STDERR_FILENO) == 1) {}

bool Progress::is_due() const {
  if (!is_terminal_) return false;
  return !is_drawn_ || std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(100);
}

void Progress::update(int64_t done, int64_t total, std::string_view rate) {
  if (!is_due()) return;
  last_ = std::chrono::steady_clock::now();
  std::string line = "\r\033[K";
  if (total > 0) {
    const int filled = static_cast<int>(std::min(done, total) * kBarWidth / total);
    line += "[" + std::string(static_cast<size_t>(filled), '#') +
            std::string(static_cast<size_t>(kBarWidth - filled), '.') + "] ";
    line += str_cat(done, "/", total);
  } else {
    line += str_cat(done);
  }
  line += str_cat(" ", what_, rate.empty() ? "" : "  ", rate);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::clear() {
  if (!is_drawn_) return;
  std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace transept

#include "apps/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/strings.h"

namespace transept {
namespace {

constexpr size_t kBarWidth = 24;

}  // namespace

Progress::Progress(std::string_view what) : what_(what), is_terminal_(isatty(STDERR_FILENO) == 1) {}

bool Progress::is_due() const {
  if (!is_terminal_) return false;
  return !is_drawn_ || std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(100);
}

void Progress::write_line(std::string_view line) {
  last_ = std::chrono::steady_clock::now();
  const std::string whole = str_cat("\r\033[K", line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::update(int64_t done, int64_t total, std::string_view rate) {
  const std::string counts = total > 0 ? str_cat(done, "/", total) : str_cat(done);
  const std::string text = str_cat(counts, " ", what_, rate.empty() ? "" : "  ", rate);
  if (total > 0) return draw(static_cast<double>(done) / static_cast<double>(total), text);
  if (is_due()) write_line(text);
}

void Progress::draw(double share, std::string_view text) {
  if (!is_due()) return;
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  write_line(str_cat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ", text));
}

void Progress::clear() {
  if (!is_drawn_) return;
  std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace transept

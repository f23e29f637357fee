#include "apps/fetch_display.h"

#include "base/log.h"

namespace transept {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);

}  // namespace

FetchDisplay::FetchDisplay(std::string name, bool is_quiet)
    : name_(std::move(name)),
      is_quiet_(is_quiet || log_level() < LogLevel::kWarning),
      progress_("bytes"),
      next_line_(std::chrono::steady_clock::now() + kBetweenLines) {}

void FetchDisplay::show(int64_t done, int64_t total) {
  if (is_quiet_) return;
  const TimePoint now = std::chrono::steady_clock::now();
  rate_.add(now, done);
  const bool is_line_due = !progress_.is_terminal() && now >= next_line_;
  if (!is_line_due && !progress_.is_due()) return;
  const std::string text = str_cat(name_, "  ", progress_text(done, total, rate_.bytes_per_second()));
  progress_.draw(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0, text);
  if (!is_line_due) return;
  log_info(text);
  next_line_ = now + kBetweenLines;
}

}  // namespace transept

#include "hub/transfer_rate.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace transept {
namespace {

constexpr auto kWindow = std::chrono::seconds(5);
constexpr auto kStep = std::chrono::milliseconds(100);  // notes that are closer replace each other

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 100) return str_cat(whole, " s");
  if (whole < 100 * 60) return str_cat((whole + 59) / 60, " min");
  return str_cat((whole + 3599) / 3600, " h");
}

}  // namespace

void TransferRate::add(TimePoint now, int64_t done) {
  const bool is_close = notes_.size() > 1 && now - notes_[notes_.size() - 2].time < kStep;
  if (is_close) {
    notes_.back() = {now, done};
  } else {
    notes_.push_back({now, done});
  }
  while (notes_.size() > 2 && now - notes_[1].time >= kWindow) notes_.pop_front();
}

double TransferRate::bytes_per_second() const {
  if (notes_.size() < 2) return 0;
  const Duration time = notes_.back().time - notes_.front().time;
  if (time < kStep) return 0;
  return std::max(0.0, static_cast<double>(notes_.back().done - notes_.front().done) / seconds(time));
}

std::string progress_text(int64_t done, int64_t total, double bytes_per_second) {
  const auto bytes = [](double count) { return format_bytes(static_cast<uint64_t>(std::max(count, 0.0))); };
  std::string text = bytes(static_cast<double>(done));
  if (total > 0) text += str_cat(" of ", bytes(static_cast<double>(total)));
  if (bytes_per_second < 1) return text;
  text += str_cat(", ", bytes(bytes_per_second), "/s");
  constexpr double kLongest = 1e7;
  const double left = static_cast<double>(total - done) / bytes_per_second;
  if (total > done && left < kLongest) text += str_cat(", ", duration_text(left), " left");
  return text;
}

}  // namespace transept

#include "speech/timestamp_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace transept {
namespace {

std::string printed(int64_t value, int width) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%0*lld", width, static_cast<long long>(value));
  return buffer;
}

}  // namespace

int64_t milliseconds(double seconds) {
  constexpr double kMost = 1e12;  // seconds: 30,000 years
  if (!(seconds > 0)) return 0;
  return static_cast<int64_t>(std::nearbyint(std::min(seconds, kMost) * 1000));  // rounds half to even
}

std::string format_timestamp(double seconds, bool always_hours, char decimal_mark) {
  const int64_t ms = milliseconds(seconds);
  const int64_t hours = ms / 3'600'000;
  const std::string front = always_hours || hours > 0 ? printed(hours, 2) + ":" : std::string();
  return str_cat(front, printed(ms / 60'000 % 60, 2), ":", printed(ms / 1000 % 60, 2), decimal_mark,
                 printed(ms % 1000, 3));
}

}  // namespace transept

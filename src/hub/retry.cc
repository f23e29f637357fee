#include "hub/retry.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxSeconds = 10'000'000;

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return std::min(value, kMaxSeconds);
}

// RFC 9110, 5.6.7: IMF-fixdate.
std::optional<std::time_t> http_date(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != 0) return std::nullopt;
  return ::timegm(&parts);
}

// "api";r=0;t=55
std::optional<int64_t> rate_limit_reset(std::string_view header) {
  std::optional<int64_t> remaining, reset;
  for (const std::string_view part : split(header, ';')) {
    const std::string_view word = trim(part);
    if (word.starts_with("r=")) remaining = number(word.substr(2));
    if (word.starts_with("t=")) reset = number(word.substr(2));
  }
  return remaining == 0 ? reset : std::nullopt;
}

}  // namespace

bool is_retryable_status(int status) {
  return status == 408 || status == 429 || (status >= 500 && status <= 599 && status != 501 && status != 505);
}

std::optional<std::chrono::seconds> requested_wait(const HttpHeaders& headers, std::time_t now) {
  if (const std::string* after = find_header(headers, "Retry-After")) {
    if (const auto seconds = number(*after)) return std::chrono::seconds(*seconds);
    if (const auto date = http_date(*after)) {
      return std::chrono::seconds(std::clamp<int64_t>(*date - now, 0, kMaxSeconds));
    }
  }
  if (const std::string* limit = find_header(headers, "RateLimit")) {
    if (const auto seconds = rate_limit_reset(*limit)) return std::chrono::seconds(*seconds);
  }
  return std::nullopt;
}

std::chrono::milliseconds backoff(int failures) {
  return std::chrono::milliseconds(std::min(250 << std::clamp(failures - 1, 0, 5), 8000));
}

}  // namespace transept

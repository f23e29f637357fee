#include "net/http_response_head.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <initializer_list>

#include "base/strings.h"
#include "net/http_chars.h"

namespace transept {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool is_ours(std::string_view name) {
  for (const std::string_view ours :
       {"Content-Length", "Content-Type", "Date", "Connection", "Transfer-Encoding", "X-Request-Id"}) {
    if (equals_ignoring_case(name, ours)) return true;
  }
  return false;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_field_value(value)) return;
  for (const std::string_view part : {name, std::string_view(": "), value, std::string_view("\r\n")}) out.append(part);
}

}  // namespace

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string http_date(int64_t unix_seconds) {
  using std::chrono::days;
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
                                 kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                                 kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                                 static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                                 static_cast<int>(clock.seconds().count()));
  return {text.data(), static_cast<size_t>(size)};
}

std::string response_head(const HttpResponse& response, const HttpResponseFraming& framing) {
  std::string out = str_cat("HTTP/1.1 ", response.status, ' ', http_reason(response.status), "\r\n");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  append_header(out, "Date", http_date(now.time_since_epoch().count()));
  append_header(out, "X-Request-Id", framing.request_id);
  if (status_has_body(response.status)) {
    if (!response.content_type.empty()) append_header(out, "Content-Type", response.content_type);
    if (framing.is_chunked) append_header(out, "Transfer-Encoding", "chunked");
    if (framing.content_length.has_value()) append_header(out, "Content-Length", str_cat(*framing.content_length));
  }
  if (response.status == 101) {
    append_header(out, "Connection", "upgrade");
  } else if (!framing.keep_alive) {
    // RFC 9110, 7.8: a message with Upgrade says so here.
    const bool has_upgrade = find_header(response.headers, "Upgrade") != nullptr;
    append_header(out, "Connection", has_upgrade ? "upgrade, close" : "close");
  } else if (framing.minor_version == 0) {
    append_header(out, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : response.headers) {
    if (!is_ours(name)) append_header(out, name, value);
  }
  out.append("\r\n");
  return out;
}

}  // namespace transept

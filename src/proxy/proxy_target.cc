#include "proxy/proxy_target.h"

#include <algorithm>

#include "base/strings.h"
#include "disagg/instance_calls.h"
#include "net/http_chars.h"

namespace transept {

bool is_of_connection(std::string_view name) {
  static constexpr std::string_view kNames[] = {"Connection", "Keep-Alive", "Proxy-Connection",  "TE",
                                                "Trailer",    "Upgrade",    "Transfer-Encoding", "Content-Length",
                                                "Expect"};
  return std::ranges::any_of(kNames, [&](std::string_view one) { return equals_ignoring_case(name, one); });
}

bool is_websocket(const HttpRequest& request) { return request.method == "GET" && request.path == "/v1/realtime"; }

HttpHeaders forwarded_headers(const HttpRequest& request) {
  HttpHeaders headers;
  std::string peers;
  for (const auto& [name, value] : request.headers) {
    if (is_of_connection(name) || equals_ignoring_case(name, "X-Request-Id") ||
        equals_ignoring_case(name, kInstanceCodeHeader)) {
      continue;
    }
    if (equals_ignoring_case(name, "X-Forwarded-For")) {
      peers += value + ", ";
    } else {
      headers.emplace_back(name, value);
    }
  }
  if (is_websocket(request)) {
    headers.emplace_back("Connection", "Upgrade");
    headers.emplace_back("Upgrade", "websocket");
  }
  headers.emplace_back("X-Request-Id", request.request_id);
  headers.emplace_back("X-Forwarded-For", peers + request.peer);
  return headers;
}

std::string target_of(const std::string& prefix, const HttpRequest& request) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=:@/";
  std::string target = prefix;
  for (const char c : request.path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_letter || kPlain.find(c) != std::string_view::npos) {
      target += c;
    } else {
      target += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return request.query.empty() ? target : str_cat(target, "?", request.query);
}

}  // namespace transept

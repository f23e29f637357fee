// The bytes of a response's head. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace transept {

struct HttpResponseFraming {
  int minor_version = 1;  // of the request
  bool keep_alive = true;
  bool is_chunked = false;
  std::optional<size_t> content_length;
  std::string_view request_id;
};

// 1xx, 204 and 304 have no body and say no length (RFC 9110, 6.4.1).
bool status_has_body(int status);

// Up to and with the empty line. Headers that are the server's to write, and those whose name or value could not be
// told from other lines, are left out.
std::string response_head(const HttpResponse& response, const HttpResponseFraming& framing);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(int64_t unix_seconds);

}  // namespace transept

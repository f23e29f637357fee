// Formats the head of a response. Thread-safe functions; response_head reads the clock for its Date.
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

// False for 1xx, 204 and 304: they have no body and no Content-Length (RFC 9110, 6.4.1).
bool status_has_body(int status);

// Formats the status line and the headers, with the empty line at the end. Leaves out headers that the server writes
// itself (HttpResponse), and headers whose name or value would break the format.
std::string response_head(const HttpResponse& response, const HttpResponseFraming& framing);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(int64_t unix_seconds);

}  // namespace transept

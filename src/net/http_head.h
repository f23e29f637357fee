// The head of a request: what its lines say, read strictly. RFC 9112 (2 to 6); everything that two programs could read
// in two ways is an error. Knows no limits and no bytes' arrival: HttpRequestParser brings the lines. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace transept {

// What is wrong with a request; `reason` is fit for clients.
struct HttpError {
  int status = 400;
  std::string reason;
};

struct HttpHead {
  HttpRequest request;               // method, path, query, headers
  bool has_absolute_target = false;  // its host is the first of the headers
  int minor_version = 1;
  bool keep_alive = true;         // as far as the client is concerned
  bool expects_continue = false;  // 100-continue
  bool is_chunked = false;
  uint64_t content_length = 0;  // of a body that is not chunked
};

// Lines are without their CRLF, and hold no CR and no LF.
std::optional<HttpError> read_request_line(std::string_view line, HttpHead& head);
std::optional<HttpError> read_header_line(std::string_view line, HttpHeaders& headers);
// What the headers mean, once all of them are there.
std::optional<HttpError> finish_head(HttpHead& head);

}  // namespace transept

// Parses the lines of a request's head, strictly (RFC 9112, 2 to 6): whatever two programs could read in two ways is an
// error. HttpRequestParser supplies the lines, and enforces the limits. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace transept {

// Why a request is malformed; `reason` may be shown to clients.
struct HttpError {
  int status = 400;
  std::string reason;
};

struct HttpHead {
  HttpRequest request;               // method, path, query, headers
  bool has_absolute_target = false;  // its host is the first header, as Host
  int minor_version = 1;
  bool keep_alive = true;         // the client allows it
  bool expects_continue = false;  // 100-continue
  bool is_chunked = false;
  uint64_t content_length = 0;  // of a body that is not chunked
};

// The read functions append one line to the head; they return an error, or nullopt. Statuses: 400; 505 for a version
// other than 1.x. REQUIRES: `line` holds no CR and no LF.
std::optional<HttpError> read_request_line(std::string_view line, HttpHead& head);
std::optional<HttpError> read_header_line(std::string_view line, HttpHeaders& headers);
// Interprets the headers, once all are read: Host, framing, Connection, Expect. Statuses: 400; 413 for a Content-Length
// of more than 18 digits; 417; 501 for a transfer coding besides chunked.
std::optional<HttpError> finish_head(HttpHead& head);

}  // namespace transept

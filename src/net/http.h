// HTTP requests and responses as values. No type of a library appears here. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

// Headers in the order of the wire. Names compare without regard to case (RFC 9110, 5.1).
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Returns the value of the first header of this name, or null.
const std::string* find_header(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded; begins with '/'
  std::string query;   // after '?', not decoded; "" without one
  HttpHeaders headers;
  std::string body;
  bool peer_is_loopback = false;  // by the address of the connection, never by a header
  std::string peer;               // the address of the connection
  std::string request_id;         // X-Request-Id if it is 1 to 128 of [A-Za-z0-9._:/-], else one that the server makes

  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

// The server writes Content-Type (from content_type), Content-Length, Date, Connection, Transfer-Encoding and
// X-Request-Id, and drops these names from `headers`.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
};

std::string_view http_reason(int status);  // "Not Found"; "Unknown" for other statuses

// Decodes percent escapes: "%41" gives "A"; '+' stays. nullopt: a '%' without two hex digits, or a NUL byte.
std::optional<std::string> percent_decoded(std::string_view text);
// Returns the decoded value of the first query parameter of this name. nullopt: it is absent, or percent_decoded
// refuses its value.
std::optional<std::string> query_parameter(std::string_view query, std::string_view name);

}  // namespace transept

// HTTP messages as values: what a handler is given, and what it answers. No type of a library is seen here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

// Names compare without regard to case (RFC 9110, 5.1), in the order of the wire.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The first of that name, or null.
const std::string* find_header(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded; begins with '/'
  std::string query;   // behind '?', as on the wire; "" without one
  HttpHeaders headers;
  std::string body;
  bool peer_is_loopback = false;  // the address of the connection, never what a header says
  std::string peer;               // that address, for logs
  std::string request_id;         // X-Request-Id of the client where it is 1..128 of [A-Za-z0-9._:/-], else one of ours

  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

// Content-Length, Date, Connection, Transfer-Encoding and X-Request-Id are the server's to write.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
};

std::string_view http_reason(int status);  // "Not Found"; "Unknown" for what has none

// "%41" -> "A"; '+' stays. nullopt: a '%' without two hex digits, or a NUL byte.
std::optional<std::string> percent_decoded(std::string_view text);
// The value of a query parameter, decoded; nullopt: it is not there.
std::optional<std::string> query_parameter(std::string_view query, std::string_view name);

}  // namespace transept

// A request's target and headers as a proxy sends them on. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "net/http.h"

namespace transept {

// RFC 9110, 7.6.1: of one connection. Lengths are those of what is sent on.
bool is_of_connection(std::string_view header);

// Those of the request, less those of its connection, and with its id and where it came from. What instances prove
// themselves with is not a client's to give. A WebSocket's handshake stays one.
HttpHeaders forwarded_headers(const HttpRequest& request);

// Whether the request opens a WebSocket of an instance, by its path; its handshake may be no good one.
bool is_websocket(const HttpRequest& request);

// As it goes into a request's first line; `path` was decoded.
std::string target_of(const std::string& prefix, const HttpRequest& request);

}  // namespace transept

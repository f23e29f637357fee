// The client's half of a WebSocket's handshake (RFC 6455, 4.2.1), as it stands in a request's head. Pure functions:
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_head.h"

namespace transept {

// Of all Sec-WebSocket-Protocol headers together.
inline constexpr size_t kMaxSubprotocolBytes = 4 << 10;

// Why the head opens no WebSocket; nullopt: it does. Statuses: 400; 405 for a method besides GET; 426 for a request
// that asks for no upgrade to a WebSocket, or for one of another version than 13; 431 for more than
// kMaxSubprotocolBytes; 505 for HTTP/1.0.
std::optional<HttpError> check_websocket_handshake(const HttpHead& head);
// The headers that an answer of such a status has: 405 says Allow, 426 Upgrade and Sec-WebSocket-Version.
HttpHeaders handshake_error_headers(int status);

// The subprotocols that the client offers, in its order; they refer to the request. Malformed offers are among them:
// check_websocket_handshake refuses those.
std::vector<std::string_view> offered_subprotocols(const HttpRequest& request);
// Returns the first one offered that is among `served` (names compare by case); "" if none is offered; nullopt if none
// of those offered is served.
std::optional<std::string> choose_subprotocol(const HttpRequest& request, std::span<const std::string_view> served);

}  // namespace transept

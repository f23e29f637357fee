// The table of routes: method, path, threads and handler. Immutable data: thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "net/http.h"
#include "net/websocket.h"
#include "server/server_context.h"

namespace transept {

enum class RouteKind : uint8_t {
  kInfo,    // answered on the I/O thread
  kWork,    // on a thread of ServerContext::workers or long_workers, with a place in the queue
  kTokens,  // the same, without the engine
  kSpeech,  // on a thread of ServerContext::transcribers, with a place in the queue
  kSocket,  // a GET that opens a WebSocket; its handler runs on I/O threads
  kPeer,    // of other instances: on a thread of ServerContext::workers, whatever waits and whether it drains
  kAdmin,   // for an admin key: the same
};

struct Route {
  std::string_view method;
  std::string_view pattern;  // "/v1/models/{model}": the last part matches any non-empty text
  RouteKind kind = RouteKind::kInfo;
  HttpResponse (*info)(const ServerContext&, const HttpRequest&) = nullptr;  // kInfo, kPeer and kAdmin
  void (*work)(const ServerContext&, const ApiCallPtr&) = nullptr;
  // kSocket: runs on the I/O thread, for a request that may come in, before its handshake is looked at. Errors are
  // answered in place of 101. It must choose among the subprotocols (choose_subprotocol).
  StatusOr<WebSocketUpgrade> (*upgrade)(const ServerContext&, const HttpRequest&) = nullptr;
  bool is_public = false;        // needs no key
  bool is_live = false;          // of servers with live audio
  bool only_encodes = false;     // of encode instances
  bool is_local_public = false;  // needs no key from a peer on this machine
};

std::span<const Route> routes();
// Whether a server of this role has the route; nullopt: one that is no instance of a fleet.
bool is_served(const Route& route, std::optional<InstanceRole> role);

// Returns the route of this method and path among routes() and `more`, or null. HEAD counts as GET, except of kSocket.
const Route* find_route(std::string_view method, std::string_view path, std::span<const Route> more = {});
// Returns the methods of a path ("GET, HEAD"), or "" if no route has that path.
std::string allowed_methods(std::string_view path, std::span<const Route> more = {});

}  // namespace transept

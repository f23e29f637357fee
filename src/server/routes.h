// The table of routes: path, what it takes, which handler answers it. Immutable data: thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "net/http.h"
#include "server/server_context.h"

namespace transept {

enum class RouteKind : uint8_t {
  kInfo,    // answered on the I/O thread
  kWork,    // on a thread of ServerContext::workers, after a place in the queue
  kTokens,  // on a thread of ServerContext::tokenizers, likewise
  kSpeech,  // on a thread of ServerContext::transcribers, likewise
};

struct Route {
  std::string_view method;
  std::string_view pattern;  // "/v1/models/{model}": the last part may stand for anything
  RouteKind kind = RouteKind::kInfo;
  HttpResponse (*info)(const ServerContext&, const HttpRequest&) = nullptr;
  void (*work)(const ServerContext&, const ApiCallPtr&) = nullptr;
  bool is_public = false;        // no key is asked for
  bool is_local_public = false;  // nor of this machine
};

std::span<const Route> routes();

// HEAD counts as GET. Null: no route of that path, or not by that method.
const Route* find_route(std::string_view method, std::string_view path);
// "GET, POST" of a path that other methods have; "" for a path that there is not.
std::string allowed_methods(std::string_view path);

}  // namespace transept

// The server that a load is put on: where its API is, and what it says of itself. Thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "net/http_client.h"

namespace transept {

struct ApiUrl {
  HttpUrl url;       // path: of the API, ".../v1"
  std::string root;  // path before that, "" or "/base": where /version is

  // Parses both http://host:8000 and http://host:8000/v1, which clients are told. Errors: HttpUrl::parse's;
  // kInvalidArgument for a query.
  static StatusOr<ApiUrl> parse(std::string_view text);
};

// Returns what GET of `path` says, if it is a JSON object, else null. Waits 10 s at most, and `timeout`. Errors: the
// server cannot be asked at all.
StatusOr<Json> ask_server(const HttpUrl& url, const std::string& path, const std::string& api_key,
                          std::chrono::milliseconds timeout);

}  // namespace transept

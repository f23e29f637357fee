// For tests: a whole server on a port of its own, and a client of it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/http_client.h"
#include "net/sse.h"
#include "server/server.h"
#include "server/server_testing.h"

namespace transept::testing {

class ServedModel final {
 public:
  // Without `caches` usage does not depend on what was asked before.
  explicit ServedModel(ServerOptions options = default_server_options(), const std::string& folder = bundled_model(),
                       bool caches = false)
      : caches_(caches) {
    options.http.port = 0;
    auto server = Server::start(std::move(options), {.is_on = false}, clock_);
    CHECK(server.ok(), error_message(server.status()));
    server_ = std::move(server).value();
    folder_ = folder;
  }

  // Until then it is loading. `change`: of the loaded model, before it is served.
  ServedModel& load(const std::function<void(LoadedModel&)>& change = nullptr) {
    EngineConfig config;
    config.model = folder_;
    config.threads = 1;
    config.caches_inputs = config.caches_prefixes = caches_;
    config.kv_cache_memory = uint64_t{32} << 20;
    auto model = load_engine(config, clock_);
    CHECK(model.ok(), error_message(model.status()));
    if (change) change(*model);
    server_->serve(std::move(model).value());
    return *this;
  }

  Server& server() { return *server_; }
  HttpClient client() const { return HttpClient("127.0.0.1", server_->http().port(), {}); }

  HttpClient::Reply get(std::string_view path, const HttpHeaders& headers = {}) const {
    return check(client().get(path, headers));
  }
  HttpClient::Reply post(std::string_view path, std::string_view body, const HttpHeaders& headers = {}) const {
    return check(client().post(path, "application/json", body, headers));
  }

  static Json json(const HttpClient::Reply& reply) {
    auto value = Json::parse(reply.body);
    EXPECT_TRUE(value.ok()) << reply.body;
    return value.ok() ? *value : Json::object();
  }

 private:
  static HttpClient::Reply check(StatusOr<HttpClient::Reply> reply) {
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : HttpClient::Reply{};
  }

  SteadyClock clock_;
  std::string folder_;
  bool caches_;
  std::unique_ptr<Server> server_;
};

// The member at a path of keys and places: at(body, "choices", 0, "text"). Null: there is none.
inline const Json& at(const Json& value) { return value; }
template <typename... Rest>
const Json& at(const Json& value, std::string_view key, const Rest&... rest);
template <typename... Rest>
const Json& at(const Json& value, int index, const Rest&... rest) {
  static const Json kNull;
  if (!value.is_array() || static_cast<size_t>(index) >= value.as_array().size()) return kNull;
  return at(value.as_array()[static_cast<size_t>(index)], rest...);
}
template <typename... Rest>
const Json& at(const Json& value, std::string_view key, const Rest&... rest) {
  static const Json kNull;
  const Json* member = value.find(key);
  return member == nullptr ? kNull : at(*member, rest...);
}

}  // namespace transept::testing

#include "load/api_server.h"

#include <algorithm>

#include "load/openai_target.h"

namespace transept {

StatusOr<ApiUrl> ApiUrl::parse(std::string_view text) {
  ApiUrl api;
  ASSIGN_OR_RETURN(api.url, HttpUrl::parse(text));
  std::string root = api.url.path;
  if (root.find('?') != std::string::npos) return invalid_argument(text, ": expected no query");
  while (root.ends_with('/')) root.pop_back();
  if (root.ends_with("/v1")) root.resize(root.size() - 3);
  api.root = root;
  api.url.path = root + "/v1";
  return api;
}

StatusOr<Json> ask_server(const HttpUrl& url, const std::string& path, const std::string& api_key,
                          std::chrono::milliseconds timeout) {
  constexpr std::chrono::seconds kPatience(10);
  HttpClient client(url.host, url.port, {.timeout = std::min<std::chrono::milliseconds>(timeout, kPatience)});
  ASSIGN_OR_RETURN(const HttpClient::Reply reply, client.get(path, authorization(api_key)));
  StatusOr<Json> json = Json::parse(reply.body);
  return reply.status == 200 && json.ok() && json->is_object() ? *std::move(json) : Json();
}

}  // namespace transept

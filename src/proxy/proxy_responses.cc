#include "proxy/proxy_responses.h"

#include "base/json.h"
#include "request/result_json.h"

namespace transept {

HttpResponse proxy_error(const Status& status) {
  HttpResponse response;
  response.status = error_kind(status).http_status;
  Json body = Json::object();
  body.set("error", error_object(status));
  response.body = body.dump();
  if (response.status == 429 || response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::string proxy_error_words(std::string_view body) {
  const StatusOr<Json> parsed = Json::parse(body);
  const Json* const error = parsed.ok() ? parsed->find("error") : nullptr;
  const Json* const message = error == nullptr ? nullptr : error->find("message");
  return message != nullptr && message->is_string() ? message->as_string() : "";
}

}  // namespace transept

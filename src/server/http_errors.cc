#include "server/http_errors.h"

#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "request/result_json.h"

namespace transept {

HttpResponse error_response(const Status& status, const Admission& admission) {
  HttpResponse response;
  response.status = error_kind(status).http_status;
  Json::Object body;
  if (response.status == 500) {
    body.emplace_back("error", error_object(absl::InternalError("internal error; the server's log says more")));
  } else {
    body.emplace_back("error", error_object(status));
  }
  response.body = Json(std::move(body)).dump();
  if (response.status == 429 || response.status == 503) {
    response.headers.emplace_back("Retry-After", str_cat(admission.retry_after_seconds()));
  }
  if (response.status == 504) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

HttpResponse http_error_response(int http_status, std::string_view message, std::string_view code,
                                 std::string_view param) {
  Json::Object error;
  error.emplace_back("message", message);
  error.emplace_back("type", http_status >= 500 ? "server_error" : "invalid_request_error");
  error.emplace_back("param", param.empty() ? Json() : Json(param));
  error.emplace_back("code", code);
  Json::Object body;
  body.emplace_back("error", std::move(error));
  return {.status = http_status, .body = Json(std::move(body)).dump()};
}

}  // namespace transept

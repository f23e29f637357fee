#include "server/replies.h"

#include <algorithm>

#include "base/ascii.h"
#include "disagg/instance_calls.h"
#include "request/field_reader.h"
#include "request/result_json.h"

namespace transept {
namespace {

bool is_json_type(std::string_view content_type) {
  const std::string type = ascii_lower(trim(content_type.substr(0, content_type.find(';'))));
  return type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"));
}

}  // namespace

void reply(const ApiCall& call, const Json& body) { call.responder->respond({.body = body.dump()}); }

void log_if_internal(const ServerContext& context, const ApiCall& call, const Status& status) {
  const int http_status = error_kind(status).http_status;
  if (http_status >= 500 && http_status != 503 && http_status != 504) {
    context.log.log_internal(call.http.request_id, error_message(status));
  }
}

void reply_error(const ServerContext& context, const ApiCall& call, const Status& status) {
  log_if_internal(context, call, status);
  HttpResponse response = error_response(status, context.admission);
  // A proxy that is not believed sends the request again without the field.
  if (error_param(status) == kEncodedInputs) response.headers.emplace_back(kInstanceCodeHeader, "refused");
  call.responder->respond(std::move(response));
}

StatusOr<Json> json_body(const ServerContext& context, const HttpRequest& request) {
  const std::string* type = request.header("Content-Type");
  if (type == nullptr || !is_json_type(*type)) {
    return invalid_argument("Content-Type must be application/json",
                            type == nullptr ? ", and there is none" : ", and is another");
  }
  StatusOr<Json> body = Json::parse(request.body, context.options.json);
  if (!body.ok()) return with_prefix(body.status(), "the body");
  if (!body->is_object()) return invalid_argument("the body must be a JSON object, not ", body->kind_name());
  if (context.options.log_prompts) context.log.log_prompt(request.request_id, request.body);
  return body;
}

StatusOr<std::string> model_name(const ServerContext& context, const std::optional<std::string>& asked) {
  const std::vector<std::string>& names = context.options.served_model_names;
  // As a form means it, whose fields may all be there and empty.
  if (!asked.has_value() || asked->empty()) return names.front();
  if (std::ranges::find(names, *asked) != names.end()) return *asked;
  return with_param(not_found("the model ", shown(Json(*asked)), " does not exist here; served: ", join(names, ", ")),
                    "model");
}

}  // namespace transept

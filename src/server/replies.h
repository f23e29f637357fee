// Answers and errors as HTTP. Pure functions but for what they send: thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "server/server_context.h"

namespace transept {

// {"error": {"message", "type", "param", "code"}} with the status of error_kind (request/result_json.h); 429 and 503
// with Retry-After, 504 with x-should-retry: false. What is our own fault (500) says nothing of ourselves; the log
// does.
HttpResponse error_response(const Status& status, const Admission& admission);
// Other statuses of HTTP in the same form: 405, 408, 413, ...; "code" is `code`.
HttpResponse http_error_response(int http_status, std::string_view message, std::string_view code,
                                 std::string_view param = {});

void reply(const ApiCall& call, const Json& body);
void reply_error(const ServerContext& context, const ApiCall& call, const Status& status);

// A body that must be a JSON object. Errors: another Content-Type (415 is 400 here, `param` null), what Json::parse
// says.
StatusOr<Json> json_body(const ServerContext& context, const HttpRequest& request);

// The name that the answer gives the model: the one that was asked for. Errors: not a name that is served (kNotFound,
// `model`).
StatusOr<std::string> model_name(const ServerContext& context, const std::optional<std::string>& asked);

}  // namespace transept

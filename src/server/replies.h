// Answers and errors as HTTP. Pure functions but for what they send: thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "server/http_errors.h"
#include "server/server_context.h"

namespace transept {

void reply(const ApiCall& call, const Json& body);
void reply_error(const ServerContext& context, const ApiCall& call, const Status& status);

// A body that must be a JSON object. Errors: another Content-Type (415 is 400 here, `param` null), what Json::parse
// says.
StatusOr<Json> json_body(const ServerContext& context, const HttpRequest& request);

// The name that the answer gives the model: the one that was asked for. Errors: not a name that is served (kNotFound,
// `model`).
StatusOr<std::string> model_name(const ServerContext& context, const std::optional<std::string>& asked);

}  // namespace transept

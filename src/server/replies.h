// Sends answers and errors, and reads what the JSON bodies of routes have in common. Thread-safe functions.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "server/http_errors.h"
#include "server/server_context.h"

namespace transept {

// Sends `body` with status 200.
void reply(const ApiCall& call, const Json& body);
// Logs an error whose message the client does not receive: of an HTTP status 5xx other than 503 and 504.
void log_if_internal(const ServerContext& context, const ApiCall& call, const Status& status);
// Sends error_response(status), after log_if_internal().
void reply_error(const ServerContext& context, const ApiCall& call, const Status& status);

// Parses a body that must be a JSON object, and logs it if prompts are logged. Errors: kInvalidArgument for another
// Content-Type (400, not 415) and for another JSON value; those of Json::parse.
StatusOr<Json> json_body(const ServerContext& context, const HttpRequest& request);

// Returns the model's name for the answer: `asked`, or the first served name if `asked` is absent or empty. Errors:
// kNotFound (error_param "model") for a name that is not served.
StatusOr<std::string> model_name(const ServerContext& context, const std::optional<std::string>& asked);

}  // namespace transept

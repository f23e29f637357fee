// GET /openapi.json, generated from the field table (request/field_table.h), so that it has every field of this build.
// A pure function: thread-safe.
#pragma once

#include "base/json.h"
#include "server/server_context.h"

namespace transept {

// Returns the OpenAPI 3.1 document of the API's routes, with the limits of the server's flags. Audio routes are left
// out if the model takes no audio.
Json openapi_document(const ServerContext& context);

}  // namespace transept

// GET /openapi.json: generated from the field table (request/field_table.h), so that a field of a build is in it. Pure.
#pragma once

#include "base/json.h"
#include "server/server_context.h"

namespace transept {

// OpenAPI 3.1 of every route that this server has (a text model has no audio routes), with the limits of its flags.
Json openapi_document(const ServerContext& context);

}  // namespace transept

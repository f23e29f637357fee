// Builds the JSON schemas (draft 2020-12, as in OpenAPI 3.1) of the bodies of routes, from the field table. Pure
// functions: thread-safe.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "request/field_table.h"

namespace transept {

// Returns an object with these members, in this order.
Json json_object(std::initializer_list<std::pair<std::string_view, Json>> members);
// Returns {"$ref": "#/components/schemas/NAME"}.
Json schema_ref(std::string_view name);

// Returns the schema of a field in a JSON body: its kind, bounds and words, and null unless it is required. The schema
// of a refused field has only the values that are accepted.
Json field_schema(const FieldSpec& field);
// Returns the same for a form, which has no null, and whose lists are repeated parts.
Json form_field_schema(const FieldSpec& field);

// Return the schema of a body: all fields of `route` (one of field_routes), with `limits`.
Json body_schema(FieldRoutes route, const RequestLimits& limits);
Json form_schema(FieldRoutes route, const RequestLimits& limits);

// Returns the schemas of the prompt forms, by the names that field_schema refers to.
Json prompt_schemas();
// Returns the same for the messages of a chat.
Json message_schemas();

}  // namespace transept

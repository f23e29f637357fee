// JSON schemas (draft 2020-12, as OpenAPI 3.1 has them) of the bodies that routes take, from the field table. Pure
// functions: thread-safe.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "request/field_table.h"

namespace transept {

// An object with these members, in this order.
Json json_object(std::initializer_list<std::pair<std::string_view, Json>> members);
// {"$ref": "#/components/schemas/NAME"}
Json schema_ref(std::string_view name);

// What the field takes in a JSON body: its kind, its bounds and its words; null is the same as absent.
Json field_schema(const FieldSpec& field);
// The same in a form, where nothing is null and a list is written part by part.
Json form_field_schema(const FieldSpec& field);

// Every field of `route` (one of field_routes) as these limits make it.
Json body_schema(FieldRoutes route, const RequestLimits& limits);
Json form_schema(FieldRoutes route, const RequestLimits& limits);

// The prompt forms that field_schema refers to, by their names.
Json prompt_schemas();

}  // namespace transept

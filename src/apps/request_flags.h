// Request fields as flags: a row of the request table is a flag of `generate`, whose value is the default of requests
// that omit the field. Rows for ids, prompts, speech models, `seed` and refused fields have no flag. Pure: thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/flags.h"
#include "base/json.h"

namespace transept {

// Returns all request flags but those of the fields in `without`.
std::vector<FlagSpec> request_flags(std::span<const std::string_view> without = {});

// Returns the given flags as an object of fields. Parses values as JSON where they are JSON, else takes them as text.
// Errors: a value that the field's row refuses, by the flag's name.
StatusOr<Json> request_defaults(const Flags& flags);

// Returns the body with defaults for the fields that it omits (or sets to null). Returns anything but an object as it
// is.
Json with_defaults(const Json& body, const Json& defaults);

}  // namespace transept

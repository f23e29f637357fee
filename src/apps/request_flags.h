// Request fields as flags: every row of the request table is a flag of `generate`, and a default for every request that
// leaves the field out.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "apps/flags.h"
#include "base/json.h"

namespace transept {

// All but those of the fields that `without` names.
std::vector<FlagSpec> request_flags(std::span<const std::string_view> without = {});

// The given ones as an object of fields. Values are read as JSON where they are JSON, else as text. Errors: a value
// that the field's row refuses, by the flag's name.
StatusOr<Json> request_defaults(const Flags& flags);

// The body with the defaults that it leaves out (or says null for). Anything but an object is handed back as it is.
Json with_defaults(const Json& body, const Json& defaults);

}  // namespace transept

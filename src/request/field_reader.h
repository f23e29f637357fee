// Reads the value of one request field by its row of the field table. Pure functions: thread-safe.
#pragma once

#include "base/json.h"
#include "request/field_table.h"

namespace transept {

// Writes `value` (not null) into the field's slot of `request`. Kinds that other code reads (kId, kPrompt, kFile) and
// kinds that are not read (kAny, kIgnored) change nothing. Errors (kInvalidArgument) name the field, what it takes and
// what it got.
Status read_field(const FieldSpec& field, const Json& value, ParsedRequest& request);

// Returns a token id: a whole number from 0 to INT32_MAX. Empty for any other value.
inline constexpr std::string_view kTokenIdRange = "a whole number from 0 to 2147483647";
std::optional<int32_t> token_id_of(const Json& value);

// Returns a whole number within int64, written 3; or written 3.0, up to 2^53 in magnitude. Empty for any other value.
std::optional<int64_t> whole_number_of(const Json& value);

// Formats a value for an error text: lists and objects by their kind, long strings as in_quotes() shortens them, long
// numbers by their number of digits, all others as JSON.
std::string shown(const Json& value);

}  // namespace transept

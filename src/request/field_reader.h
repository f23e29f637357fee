// Reads one field's value as its row of the table says.
#pragma once

#include "base/json.h"
#include "request/field_table.h"

namespace transept {

// Puts `value` (not null) into the field's slot of `request`. Errors name the field, what it takes and what it got.
Status read_field(const FieldSpec& field, const Json& value, ParsedRequest& request);

// A token id as a JSON number: a whole one from 0 to INT32_MAX.
inline constexpr std::string_view kTokenIdRange = "a whole number from 0 to 2147483647";
std::optional<int32_t> token_id_of(const Json& value);

// A whole number within int64, written 3 or 3.0.
std::optional<int64_t> whole_number_of(const Json& value);

// A value in an error text: short ones as written, long texts as quoted() has them, others by their kind.
std::string shown(const Json& value);

}  // namespace transept

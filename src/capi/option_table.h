// Options by name in a JSON object: a table of rows, each with the place of its value and its range. The options of a
// model, of a transcription and of subtitles are such tables. Fields of requests are not: request/field_table.h has
// them. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept {

// Where a value goes. null empties an optional, and leaves any other as it is.
using OptionSlot = std::variant<bool*, int32_t*, int64_t*, uint64_t*, double*, std::string*, std::optional<int32_t>*,
                                std::optional<uint64_t>*, std::optional<double>*, std::optional<std::vector<int32_t>>*>;

// min and max are the range of whole numbers; other code checks numbers, words and the items of lists.
template <typename T>
struct OptionRow {
  std::string_view name;
  OptionSlot (*slot)(T&);
  double min = 0;
  double max = INT32_MAX;
};

// Writes `value` into the slot. Errors (kInvalidArgument) name the option, what it takes and what it got.
Status read_option(std::string_view name, const Json& value, double min, double max, const OptionSlot& slot);

// An option that no row has; suggests the nearest.
Status unknown_option(std::string_view name, std::string_view of, const std::vector<std::string>& known);

// Parses an object, or {} if `json` is empty. Errors: no object; with `param`.
StatusOr<Json> parse_options(std::string_view json, std::string_view param);

// Writes the members of an object into `target`. Errors: read_option's and unknown_option's. `of`: "a model".
template <typename T>
Status read_options(const Json& object, std::span<const OptionRow<std::type_identity_t<T>>> table, std::string_view of,
                    T& target) {
  for (const auto& [name, value] : object.as_object()) {
    const OptionRow<T>* found = nullptr;
    for (const OptionRow<T>& row : table) found = row.name == name ? &row : found;
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const OptionRow<T>& row : table) known.emplace_back(row.name);
      return unknown_option(name, of, known);
    }
    RETURN_IF_ERROR(read_option(name, value, found->min, found->max, found->slot(target)));
  }
  return ok_status();
}

}  // namespace transept

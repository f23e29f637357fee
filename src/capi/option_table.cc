#include "capi/option_table.h"

#include <type_traits>

#include "base/quoted.h"
#include "request/field_reader.h"

namespace transept {
namespace {

Status wrong(std::string_view name, std::string_view wanted, const Json& value) {
  return field_error(name, str_cat(name, " must be ", wanted, ", not ", shown(value)));
}

template <typename Int>
Status read_whole(std::string_view name, const Json& value, double min, double max, Int& target) {
  const std::optional<int64_t> number = whole_number_of(value);
  if (!number.has_value() || static_cast<double>(*number) < min || static_cast<double>(*number) > max) {
    return wrong(name, str_cat("a whole number from ", min, " to ", max), value);
  }
  target = static_cast<Int>(*number);
  return ok_status();
}

Status read_ids(std::string_view name, const Json& value, std::vector<int32_t>& target) {
  constexpr size_t kMaxIds = 100000;
  constexpr std::string_view kWanted = "a list of at most 100000 whole numbers of 32 bits";
  if (!value.is_array() || value.as_array().size() > kMaxIds) return wrong(name, kWanted, value);
  std::vector<int32_t> ids;
  for (const Json& item : value.as_array()) {
    const std::optional<int64_t> number = whole_number_of(item);
    if (!number.has_value() || *number < INT32_MIN || *number > INT32_MAX) return wrong(name, kWanted, item);
    ids.push_back(static_cast<int32_t>(*number));
  }
  target = std::move(ids);
  return ok_status();
}

template <typename T>
Status read_value(std::string_view name, const Json& value, double min, double max, T& target) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_bool()) return wrong(name, "true or false", value);
    target = value.as_bool();
    return ok_status();
  } else if constexpr (std::is_integral_v<T>) {
    return read_whole(name, value, min, max, target);
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value.is_number()) return wrong(name, "a number", value);
    target = value.as_double();
    return ok_status();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return wrong(name, "a string", value);
    target = value.as_string();
    return ok_status();
  } else {
    return read_ids(name, value, target);
  }
}

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace

Status read_option(std::string_view name, const Json& value, double min, double max, const OptionSlot& slot) {
  return std::visit(
      [&](auto* target) -> Status {
        using Target = std::remove_pointer_t<decltype(target)>;
        if constexpr (IsOptional<Target>::value) {
          if (value.is_null()) {
            target->reset();
            return ok_status();
          }
          typename Target::value_type read{};
          RETURN_IF_ERROR(read_value(name, value, min, max, read));
          *target = std::move(read);
          return ok_status();
        } else {
          return value.is_null() ? ok_status() : read_value(name, value, min, max, *target);
        }
      },
      slot);
}

Status unknown_option(std::string_view name, std::string_view of, const std::vector<std::string>& known) {
  const std::string near = nearest(name.substr(0, kMaxQuotedBytes), known);
  return field_error(name.empty() ? "\"\"" : name.substr(0, kMaxQuotedBytes),
                     str_cat(in_quotes(name), " is no option of ", of,
                             near.empty() ? str_cat("; the options are ", join(known, ", "))
                                          : str_cat("; did you mean \"", near, "\"?")));
}

StatusOr<Json> parse_options(std::string_view json, std::string_view param) {
  if (json.empty()) return Json::object();
  StatusOr<Json> object = Json::parse(json);
  if (!object.ok()) return with_param(invalid_argument(param, ": ", error_message(object.status())), param);
  if (!object->is_object()) {
    return field_error(param, str_cat(param, " must be a JSON object, not ", object->kind_name()));
  }
  return object;
}

}  // namespace transept

#include "disagg/injected_input.h"

#include <limits>

#include "base/strings.h"

namespace transept {
namespace {

StatusOr<const Json*> member(const Json& object, std::string_view where, std::string_view name) {
  const Json* value = object.find(name);
  if (value != nullptr) return value;
  return field_error(str_cat(where, ".", name), str_cat(where, ".", name, " is missing"));
}

template <typename Number>
StatusOr<Number> number_of(const Json& object, std::string_view where, std::string_view name, Number least) {
  ASSIGN_OR_RETURN(const Json* value, member(object, where, name));
  constexpr auto kMost = static_cast<int64_t>(std::numeric_limits<Number>::max());
  if (value->is_int() && value->as_int() >= int64_t{least} && value->as_int() <= kMost) {
    return static_cast<Number>(value->as_int());
  }
  return field_error(str_cat(where, ".", name),
                     str_cat(where, ".", name, " is no whole number from ", int64_t{least}, " to ", kMost));
}

int nibble_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

StatusOr<ContentDigest> digest_of(const Json& object, std::string_view where) {
  ASSIGN_OR_RETURN(const Json* value, member(object, where, "digest"));
  ContentDigest digest;
  bool is_good = value->is_string() && value->as_string().size() == 2 * digest.bytes.size();
  for (size_t i = 0; is_good && i < digest.bytes.size(); ++i) {
    const int high = nibble_of(value->as_string()[2 * i]), low = nibble_of(value->as_string()[2 * i + 1]);
    is_good = high >= 0 && low >= 0;
    digest.bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  if (is_good) return digest;
  return field_error(str_cat(where, ".digest"), str_cat(where, ".digest is not 64 lower-case hexadecimal digits"));
}

}  // namespace

Json injected_json(const InjectedInput& injected) {
  Json place = Json::object();
  place.set("offset", injected.place.offset);
  place.set("length", injected.place.length);
  Json json = Json::object();
  json.set("request_id", injected.input.request_id);
  json.set("input_id", static_cast<int64_t>(injected.input.input_id));
  json.set("digest", digest_hex(injected.digest));
  json.set("num_positions", injected.num_positions);
  json.set("place", std::move(place));
  return json;
}

StatusOr<InjectedInput> read_injected(const Json& json, std::string_view where) {
  if (!json.is_object()) return field_error(where, str_cat(where, " is no object"));
  InjectedInput injected;
  ASSIGN_OR_RETURN(const Json* request, member(json, where, "request_id"));
  const std::string name = str_cat(where, ".request_id");
  if (!request->is_string()) return field_error(name, str_cat(name, " is no text"));
  const Status is_name = check_ec_name(name, request->as_string());
  if (!is_name.ok()) return with_prefix(is_name, name);
  injected.input.request_id = request->as_string();
  ASSIGN_OR_RETURN(injected.input.input_id, number_of<uint32_t>(json, where, "input_id", 0));
  ASSIGN_OR_RETURN(injected.digest, digest_of(json, where));
  ASSIGN_OR_RETURN(injected.num_positions, number_of<int32_t>(json, where, "num_positions", 1));
  ASSIGN_OR_RETURN(const Json* place, member(json, where, "place"));
  const std::string inside = str_cat(where, ".place");
  if (!place->is_object()) return field_error(inside, str_cat(inside, " is no object"));
  ASSIGN_OR_RETURN(injected.place.offset, number_of<int32_t>(*place, inside, "offset", 0));
  ASSIGN_OR_RETURN(injected.place.length, number_of<int32_t>(*place, inside, "length", 1));
  return injected;
}

Json encoded_inputs_json(const InjectedInputs& inputs) {
  Json list = Json::array();
  for (const auto& input : inputs) list.push_back(input.has_value() ? injected_json(*input) : Json());
  return list;
}

StatusOr<InjectedInputs> read_encoded_inputs(const Json& json, size_t count) {
  if (!json.is_array()) return field_error(kEncodedInputs, str_cat(kEncodedInputs, " is no list"));
  if (json.as_array().size() != count) {
    return field_error(kEncodedInputs, str_cat(kEncodedInputs, " is a list of ", json.as_array().size(),
                                               ", and the request has ", count, " inputs"));
  }
  InjectedInputs inputs;
  for (const Json& one : json.as_array()) {
    if (one.is_null()) {
      inputs.emplace_back();
      continue;
    }
    StatusOr<InjectedInput> input = read_injected(one, str_cat(kEncodedInputs, "[", inputs.size(), "]"));
    if (!input.ok()) return field_error(kEncodedInputs, error_message(input.status()));
    inputs.emplace_back(std::move(input).value());
  }
  return inputs;
}

}  // namespace transept

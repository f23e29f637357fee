#include "proxy/held_request.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/check.h"
#include "request/field_table.h"
#include "request/request.h"

namespace transept {
namespace {

struct HeldRoute {
  std::string_view path, prompts;
  FieldRoutes fields;
};
constexpr HeldRoute kRoutes[] = {
    {"/v1/completions", "prompt", field_routes::kCompletions},
    {"/v1/score", "prompt", field_routes::kScore},
    {"/v1/translate", "text", field_routes::kTranslate},
};

bool is_json(const HttpRequest& request) {
  const std::string* type = request.header("Content-Type");
  return type != nullptr && ascii_lower(trim(type->substr(0, type->find(';')))) == "application/json";
}

// A list of prompts, and not one prompt of ids.
bool is_batch(const Json& prompts) {
  if (!prompts.is_array() || prompts.as_array().empty()) return false;
  return !prompts.as_array().front().is_number();
}

// Of bodies of a route, those members that say what is encoded.
Json encode_fields(const Json& body, std::string_view prompts) {
  Json fields = Json::object();
  for (const auto& [name, value] : body.as_object()) {
    // The model's name is the decode instance's to check; a ticket has a fingerprint.
    if (name == prompts || name == "model") continue;
    const FieldSpec* field = find_field(name, field_routes::kEncode);
    if (field == nullptr || field->kind == FieldKind::kIgnored) continue;
    if ((field->routes & field_routes::kGeneration) != 0) fields.set(name, value);
  }
  return fields;
}

// Tickets and room are counted in positions, before anything has read the prompt. Four bytes a token; a clip is one
// window; rows lie in blocks.
int32_t positions_hint(const Json& prompt) {
  constexpr size_t kWindow = 1504, kBytesOfToken = 4, kBlock = 16;
  size_t count = kWindow;
  if (prompt.is_string()) count = prompt.as_string().size() / kBytesOfToken + 1;
  if (prompt.is_array()) count = prompt.as_array().size();
  return static_cast<int32_t>((std::clamp<size_t>(count, 1, kWindow) + kBlock - 1) / kBlock * kBlock);
}

}  // namespace

StatusOr<std::vector<HeldPrompt>> split_prompts(const HttpRequest& request, size_t max_prompts) {
  const auto* route = std::ranges::find(kRoutes, request.path, &HeldRoute::path);
  if (request.method != "POST" || route == std::end(kRoutes)) return not_found("no route with prompts");
  if (!is_json(request)) return invalid_argument("no JSON");
  ASSIGN_OR_RETURN(const Json body, Json::parse(request.body));
  if (!body.is_object()) return invalid_argument("no object");
  if (body.find(kEncodedInputs) != nullptr) return field_error(kEncodedInputs, "is for a proxy to give");
  RETURN_IF_ERROR(parse_body(body, route->fields, {}).status());
  const Json* prompts = body.find(route->prompts);
  if (prompts == nullptr || prompts->is_null()) return field_error(route->prompts, "is missing");
  const Json::Array one = is_batch(*prompts) ? Json::Array() : Json::Array{*prompts};
  const Json::Array& all = one.empty() ? prompts->as_array() : one;
  if (all.size() > max_prompts) {
    return resource_exhausted(all.size(), " prompts: at most ", max_prompts, " of a request are held");
  }
  const Json fields = encode_fields(body, route->prompts);
  std::vector<HeldPrompt> held;
  for (const Json& prompt : all) {
    Json encode = fields;
    encode.set("prompt", prompt);
    std::vector<std::string> warnings;
    RETURN_IF_ERROR(read_prompts(encode, 1, warnings).status());
    held.push_back({std::move(encode), positions_hint(prompt)});
  }
  return held;
}

int64_t num_positions(const std::vector<HeldPrompt>& prompts) {
  int64_t sum = 0;
  for (const HeldPrompt& prompt : prompts) sum += prompt.num_positions_hint;
  return sum;
}

std::string with_encoded_inputs(std::string_view body, const InjectedInputs& inputs) {
  const size_t end = body.rfind('}');
  CHECK(end != std::string_view::npos, "no object");
  return str_cat(body.substr(0, end), ", \"", kEncodedInputs, "\": ", encoded_inputs_json(inputs).dump(),
                 body.substr(end));
}

}  // namespace transept

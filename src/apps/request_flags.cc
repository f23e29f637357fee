#include "apps/request_flags.h"

#include <algorithm>

#include "base/environment.h"
#include "request/field_table.h"

namespace transept {
namespace {

// `seed` is the engine's flag: the seed of requests that name none. `stream` and ids belong to a request alone.
bool is_flag(const FieldSpec& field) {
  return field.kind != FieldKind::kId && field.kind != FieldKind::kPrompt && field.models == FieldModels::kAll &&
         field.refusal.empty() && field.name != "seed";
}

std::string flag_name(std::string_view field) {
  std::string name(field);
  for (char& c : name) c = c == '_' ? '-' : c;
  return name;
}

std::string value_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kInt:
    case FieldKind::kTokenId: return "N";
    case FieldKind::kNumber: return "X";
    case FieldKind::kBool: return "BOOL";
    case FieldKind::kString:
    case FieldKind::kStrings: return "TEXT";
    case FieldKind::kTokenIds:
    case FieldKind::kTokenIdOrList:
    case FieldKind::kTokenIdLists: return "JSON";
    default: return "VALUE";
  }
}

// A field that takes text takes the argument as it stands; others are JSON.
Json flag_value(const FieldSpec& field, const std::string& text) {
  const bool wants_text = field.kind == FieldKind::kString || field.kind == FieldKind::kStrings;
  StatusOr<Json> value = Json::parse(text);
  if (!value.ok() || (wants_text && !value->is_string() && !value->is_array())) return Json(text);
  return std::move(value).value();
}

}  // namespace

std::vector<FlagSpec> request_flags(std::span<const std::string_view> without) {
  std::vector<FlagSpec> table;
  for (const FieldSpec& field : request_fields()) {
    if (!is_flag(field) || std::find(without.begin(), without.end(), field.name) != without.end()) continue;
    table.push_back({flag_name(field.name), value_name(field.kind), "", std::string(field.doc),
                     "Request fields (defaults for requests that leave them out)"});
  }
  keep_common(table, {"max-tokens", "temperature", "top-p", "top-k", "n", "num-beams", "length-penalty", "stop",
                      "repetition-penalty", "logprobs", "source-lang", "target-lang"});
  return table;
}

StatusOr<Json> request_defaults(const Flags& flags) {
  Json defaults = Json::object();
  for (const FieldSpec& field : request_fields()) {
    if (!is_flag(field)) continue;
    const auto text = flags.text(flag_name(field.name));
    if (!text.has_value()) continue;
    // The field alone in a request: what the table says of it holds here too.
    Json probe = Json::object();
    probe.set("prompt", "x");
    probe.set(field.name, flag_value(field, *text));
    const StatusOr<ParsedRequest> parsed = parse_request(probe, Json(0));
    if (!parsed.ok()) {
      const Status refused = with_prefix(parsed.status(), str_cat("--", flag_name(field.name), " ", *text));
      return blame_environment(refused, flags.from_environment());
    }
    defaults.set(field.name, *probe.find(field.name));
  }
  return defaults;
}

Json with_defaults(const Json& body, const Json& defaults) {
  Json whole = body;
  if (!body.is_object()) return whole;
  for (const auto& [name, value] : defaults.as_object()) {
    const Json* given = body.find(name);
    if (given == nullptr || given->is_null()) whole.set(name, value);
  }
  return whole;
}

}  // namespace transept

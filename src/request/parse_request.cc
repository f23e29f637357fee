#include <algorithm>

#include "base/quoted.h"
#include "request/field_reader.h"
#include "request/prompt_reader.h"
#include "request/request.h"

namespace transept {
namespace {

// A line of nothing but unknown fields must not become a megabyte of warnings.
constexpr size_t kMaxWarnings = 20;
constexpr size_t kMaxShownName = 100;

std::string unknown_field_warning(const std::string& name, FieldRoutes route) {
  std::vector<std::string> names;
  for (const FieldSpec* field : fields_of(route)) {
    if (field->refusal.empty()) names.emplace_back(field->name);
  }
  const std::string shown_name = name.substr(0, kMaxShownName);
  const std::string guess = nearest(shown_name, names);
  return str_cat("unknown field ", in_quotes(shown_name, kMaxShownName), " is ignored",
                 guess.empty() ? "" : str_cat("; did you mean \"", guess, "\"?"));
}

// Whether a field that is not supported asks for anything.
bool is_on(const FieldSpec& field, const Json& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return false;
  if (!field.accepted.empty() && value.dump() == field.accepted) return false;
  return !(value.is_number() && value.as_double() == field.min);
}

Status check_id(const Json& request) {
  const Json* id = request.find("id");
  if (id == nullptr || id->is_null() || id->is_string() || id->is_number()) return ok_status();
  return field_error("id", str_cat("id must be a string or a number, not ", id->kind_name()));
}

// prompt_token_ids and the like beside `prompt` would be ignored in silence or with a warning too easily missed.
std::string misplaced_prompt_field(const Json& request) {
  for (const char* name : {"encoder_prompt", "prompt_token_ids", "prompt_tokens", "multi_modal_data"}) {
    if (const Json* value = request.find(name); value != nullptr && !value->is_null()) return name;
  }
  return "";
}

Status refuse_unsupported(const Json& body, FieldRoutes route) {
  for (const auto& [name, value] : body.as_object()) {
    const FieldSpec* field = find_field(name, route);
    if (field == nullptr || field->refusal.empty() || !is_on(*field, value)) continue;
    return with_param(unimplemented(name, ": ", field->refusal), name);
  }
  return ok_status();
}

Status read_fields(const Json& body, FieldRoutes route, const RequestLimits& limits, ParsedRequest& request) {
  for (const auto& [name, value] : body.as_object()) {
    if (const FieldSpec* field = find_field(name, route); field == nullptr) {
      ++request.num_unknown_fields;
      if (request.warnings.size() < kMaxWarnings) request.warnings.push_back(unknown_field_warning(name, route));
    } else if (!value.is_null()) {
      RETURN_IF_ERROR(read_field(with_limits(*field, limits), value, request));
    }
  }
  return ok_status();
}

Status check_required(const Json& body, FieldRoutes route) {
  for (const FieldSpec* field : fields_of(route)) {
    if (!field->is_required || field->kind == FieldKind::kFile) continue;
    if (const Json* value = body.find(field->name); value == nullptr || value->is_null()) {
      return field_error(field->name, str_cat(field->name, " is missing"));
    }
  }
  return ok_status();
}

}  // namespace

Json request_id(const Json& line, const Json& fallback) {
  const Json* id = line.find("id");
  return id != nullptr && (id->is_string() || id->is_number()) ? *id : fallback;
}

StatusOr<ParsedRequest> parse_request(const Json& line, const Json& fallback_id) {
  if (!line.is_object()) return invalid_argument("a request must be an object, not ", line.kind_name());
  RETURN_IF_ERROR(check_id(line));
  ParsedRequest request;
  request.id = request_id(line, fallback_id);
  if (const std::string name = misplaced_prompt_field(line); !name.empty()) {
    return field_error(name, str_cat(name, " belongs inside prompt: {\"prompt\": {\"", name, "\": ..}}"));
  }
  RETURN_IF_ERROR(read_fields(line, field_routes::kJsonLines, RequestLimits(), request));
  ASSIGN_OR_RETURN(request.prompt, read_prompt(line, request.warnings));
  RETURN_IF_ERROR(refuse_unsupported(line, field_routes::kJsonLines));
  return request;
}

StatusOr<ParsedRequest> parse_body(const Json& body, FieldRoutes route, const RequestLimits& limits) {
  if (!body.is_object()) return invalid_argument("the body must be a JSON object, not ", body.kind_name());
  if (const std::string name = misplaced_prompt_field(body); !name.empty() && (route & field_routes::kPrompted) != 0) {
    return field_error(name, str_cat(name, " belongs inside prompt: {\"prompt\": {\"", name, "\": ..}}"));
  }
  ParsedRequest request;
  RETURN_IF_ERROR(check_required(body, route));
  RETURN_IF_ERROR(read_fields(body, route, limits, request));
  RETURN_IF_ERROR(refuse_unsupported(body, route));
  return request;
}

Status check_token_ids(const EncoderDecoderPrompt& prompt, int64_t vocab_size) {
  if (vocab_size == 0) return ok_status();
  const auto check = [vocab_size](const SingletonPrompt& side, std::string_view param) {
    const auto* tokens = std::get_if<TokensPrompt>(&side.content);
    if (tokens == nullptr) return ok_status();
    const auto outside = std::ranges::find_if(
        tokens->token_ids, [vocab_size](int32_t id) { return id < 0 || static_cast<int64_t>(id) >= vocab_size; });
    if (outside == tokens->token_ids.end()) return ok_status();
    return field_error(param, str_cat(param, ": token id ", *outside, " is outside the vocabulary of ", vocab_size));
  };
  RETURN_IF_ERROR(check(prompt.encoder, prompt.encoder_param));
  return prompt.decoder.has_value() ? check(*prompt.decoder, prompt.decoder_param) : ok_status();
}

}  // namespace transept

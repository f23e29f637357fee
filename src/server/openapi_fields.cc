#include "server/openapi_fields.h"

#include <cstdint>
#include <limits>
#include <string>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxTokenId = std::numeric_limits<int32_t>::max();

Json type(std::string_view name) { return json_object({{"type", name}}); }

// Bounds of whole numbers are whole; the widest are int64's, which no double holds.
Json bound(const FieldSpec& field, double value) {
  if (field.kind != FieldKind::kInt) return value;
  constexpr double kPastInt64 = 9223372036854775808.0;
  return value >= kPastInt64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value);
}

Json ranged(std::string_view type_name, const FieldSpec& field) {
  Json schema = type(type_name);
  schema.set(field.min_excluded ? "exclusiveMinimum" : "minimum", bound(field, field.min));
  schema.set("maximum", bound(field, field.max));
  return schema;
}

Json list_of(Json items, size_t min_items, size_t max_items) {
  Json schema = type("array");
  schema.set("items", std::move(items));
  if (min_items > 0) schema.set("minItems", static_cast<int64_t>(min_items));
  schema.set("maxItems", static_cast<int64_t>(max_items));
  return schema;
}

Json any_of(std::initializer_list<Json> schemas) { return json_object({{"anyOf", Json::Array(schemas)}}); }

Json filled_string() { return json_object({{"type", "string"}, {"minLength", 1}}); }

Json token_id() { return json_object({{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxTokenId}}); }

Json word(const FieldSpec& field) {
  Json words = Json::array();
  for (const std::string_view each : field.words) words.push_back(each);
  return json_object({{"type", "string"}, {"enum", std::move(words)}});
}

Json biases(const FieldSpec& field) {
  return json_object({{"type", "object"},
                      {"propertyNames", json_object({{"pattern", "^(0|[1-9][0-9]{0,9})$"}})},
                      {"additionalProperties", ranged("number", field)},
                      {"maxProperties", static_cast<int64_t>(field.max_items)}});
}

// One side of a prompt, or a list of one a prompt.
Json prompts(const FieldSpec& field) {
  const Json one = schema_ref(field.name == "decoder_prompt" ? "DecoderPrompt" : "Prompt");
  return any_of({one, json_object({{"type", "array"}, {"items", one}, {"minItems", 1}})});
}

// What the kind takes, null aside.
Json kind_schema(const FieldSpec& field) {
  switch (field.kind) {
    case FieldKind::kId: return json_object({{"type", Json::Array{"string", "number"}}});
    case FieldKind::kPrompt: return prompts(field);
    case FieldKind::kMessages:
      return json_object({{"type", "array"}, {"items", schema_ref("ChatMessage")}, {"minItems", 1}});
    case FieldKind::kInt: return ranged("integer", field);
    case FieldKind::kNumber: return ranged("number", field);
    case FieldKind::kBool: return type("boolean");
    case FieldKind::kString: {
      Json string = filled_string();
      if (field.max_items > 0) string.set("maxLength", static_cast<int64_t>(field.max_items));
      return string;
    }
    case FieldKind::kText: return type("string");
    case FieldKind::kTexts: return any_of({type("string"), list_of(type("string"), 1, field.max_items)});
    case FieldKind::kWord: return word(field);
    case FieldKind::kWords: return any_of({word(field), list_of(word(field), 0, field.max_items)});
    case FieldKind::kStrings: return any_of({filled_string(), list_of(filled_string(), 0, field.max_items)});
    case FieldKind::kTokenId: return token_id();
    case FieldKind::kTokenIds: return list_of(token_id(), 0, field.max_items);
    case FieldKind::kTokenIdOrList: return any_of({token_id(), list_of(token_id(), 0, field.max_items)});
    case FieldKind::kTokenIdLists: return list_of(list_of(token_id(), 1, kMaxBadWordTokens), 0, field.max_items);
    case FieldKind::kLogitBias: return biases(field);
    case FieldKind::kEarlyStopping: return json_object({{"enum", Json::Array{true, false, "never"}}});
    case FieldKind::kPrediction:
      return json_object(
          {{"type", "object"},
           {"properties",
            json_object({{"type", json_object({{"enum", Json::Array{"content"}}})},
                         {"content", any_of({type("string"), list_of(json_object({{"type", "object"}}), 0, 0)})}})},
           {"required", Json::Array{"type", "content"}}});
    case FieldKind::kStreamOptions:
      return json_object(
          {{"type", "object"},
           {"properties", json_object({{field.words[0], json_object({{"type", Json::Array{"boolean", "null"}}})}})}});
    case FieldKind::kChunking:  // what a form says; an object's members are fields of their own there
      return json_object({{"type", "string"}, {"enum", Json::Array{"auto", "server_vad"}}});
    case FieldKind::kFile: return json_object({{"type", "string"}, {"format", "binary"}});
    case FieldKind::kAny:
    case FieldKind::kIgnored: return Json::object();
  }
  return Json::object();
}

// The schema with null beside what it takes.
Json or_null(Json schema) {
  if (const Json* alternatives = schema.find("anyOf"); alternatives != nullptr) {
    Json::Array all = alternatives->as_array();
    all.push_back(type("null"));
    schema.set("anyOf", std::move(all));
    return schema;
  }
  if (const Json* words = schema.find("enum"); words != nullptr) {
    Json::Array all = words->as_array();
    all.push_back(Json());
    schema.set("enum", std::move(all));
  }
  if (const Json* name = schema.find("type"); name != nullptr) schema.set("type", Json::Array{*name, "null"});
  return schema;
}

Json described(Json schema, const FieldSpec& field) {
  if (field.refusal.empty()) {
    schema.set("description", field.doc);
  } else {
    schema.set("description", str_cat("not supported: ", field.refusal));
    schema.set("x-transept-refused", field.refusal);
  }
  if (field.models == FieldModels::kSpeech) schema.set("x-transept-models", "speech");
  return schema;
}

Json object_schema(Json properties, Json::Array required) {
  Json schema = type("object");
  schema.set("properties", std::move(properties));
  if (!required.empty()) schema.set("required", std::move(required));
  return schema;
}

bool is_list(const FieldSpec& field) { return field.kind == FieldKind::kWords || field.kind == FieldKind::kStrings; }

// One form of a prompt: these members, of which `required` must be there; the other ones not, or null.
Json prompt_form(std::string_view doc, const Json& members, std::string_view required) {
  Json properties = members;
  for (const char* name :
       {"prompt", "prompt_token_ids", "prompt_tokens", "multi_modal_data", "encoder_prompt", "decoder_prompt"}) {
    if (members.find(name) == nullptr) properties.set(name, type("null"));
  }
  Json schema = object_schema(std::move(properties), {required});
  schema.set("description", doc);
  return schema;
}

Json one_of(std::string_view doc, std::initializer_list<std::string_view> names) {
  Json all = Json::array();
  for (const std::string_view name : names) all.push_back(schema_ref(name));
  return json_object({{"description", doc}, {"oneOf", std::move(all)}});
}

Json media_schema() {
  const Json samples = json_object({{"type", "array"}, {"items", type("number")}});
  const Json rate = json_object({{"type", "integer"}, {"minimum", 1}});
  Json audio =
      any_of({object_schema(json_object({{"base64", json_object({{"type", "string"}, {"contentEncoding", "base64"}})}}),
                            {"base64"}),
              object_schema(json_object({{"samples", samples}, {"sampling_rate", rate}}), {"samples", "sampling_rate"}),
              type("string")});
  audio.set("description",
            "A file's bytes, or samples; a path alone only under the folder that --allowed-local-media-path names.");
  Json schema = object_schema(json_object({{"audio", std::move(audio)}}), {});
  schema.set("description", "Media for the encoder, by modality; for models that take them.");
  schema.set("minProperties", 1);
  return schema;
}

}  // namespace

Json json_object(std::initializer_list<std::pair<std::string_view, Json>> members) {
  Json::Object object;
  for (const auto& [name, value] : members) object.emplace_back(std::string(name), value);
  return object;
}

Json schema_ref(std::string_view name) { return json_object({{"$ref", str_cat("#/components/schemas/", name)}}); }

Json field_schema(const FieldSpec& field) {
  if (!field.refusal.empty()) {  // only what asks for nothing
    Json::Array nothing = {Json(), false};
    nothing.push_back(field.min);
    if (!field.accepted.empty()) nothing.push_back(Json::parse(field.accepted).value());
    return described(json_object({{"enum", std::move(nothing)}}), field);
  }
  const Json schema = kind_schema(field);
  return described(field.is_required ? schema : or_null(schema), field);
}

Json form_field_schema(const FieldSpec& field) {
  if (!field.refusal.empty()) return described(json_object({{"type", "string"}, {"maxLength", 0}}), field);
  if (field.kind == FieldKind::kWords) return described(list_of(word(field), 0, field.max_items), field);
  if (field.kind == FieldKind::kStrings) return described(list_of(filled_string(), 0, field.max_items), field);
  return described(kind_schema(field), field);
}

Json body_schema(FieldRoutes route, const RequestLimits& limits) {
  Json properties = Json::object();
  Json::Array required;
  for (const FieldSpec* field : fields_of(route)) {
    properties.set(field->name, field_schema(with_limits(*field, limits)));
    if (field->is_required) required.emplace_back(field->name);
  }
  return object_schema(std::move(properties), std::move(required));
}

Json form_schema(FieldRoutes route, const RequestLimits& limits) {
  Json properties = Json::object();
  Json::Array required;
  for (const FieldSpec* field : fields_of(route)) {
    const std::string name = str_cat(field->name, is_list(*field) ? "[]" : "");
    properties.set(name, form_field_schema(with_limits(*field, limits)));
    if (field->is_required) required.emplace_back(name);
  }
  return object_schema(std::move(properties), std::move(required));
}

Json prompt_schemas() {
  const Json ids = json_object({{"type", "array"}, {"items", token_id()}, {"minItems", 1}});
  const Json text = type("string"), media = schema_ref("MultiModalData");
  Json schemas = Json::object();
  schemas.set("PromptText", json_object({{"type", "string"}, {"description", "A text."}}));
  Json bare = ids;
  bare.set("description", "Token ids, taken as they are.");
  schemas.set("PromptTokenIds", std::move(bare));
  schemas.set("TextPrompt", prompt_form("A text.", json_object({{"prompt", text}}), "prompt"));
  schemas.set("TokensPrompt", prompt_form("Token ids, taken as they are.", json_object({{"prompt_token_ids", ids}}),
                                          "prompt_token_ids"));
  schemas.set("TokensPromptAlias",
              prompt_form("Token ids under their other name.", json_object({{"prompt_tokens", ids}}), "prompt_tokens"));
  schemas.set("MultiModalData", media_schema());
  schemas.set("MediaPrompt",
              prompt_form("Media for the encoder; nothing or a text for the decoder.",
                          json_object({{"multi_modal_data", media}, {"prompt", or_null(text)}}), "multi_modal_data"));
  Json with_ids =
      prompt_form("Media for the encoder, and token ids for the decoder.",
                  json_object({{"multi_modal_data", media}, {"prompt_token_ids", ids}}), "multi_modal_data");
  with_ids.set("required", Json::Array{"multi_modal_data", "prompt_token_ids"});
  schemas.set("MediaTokensPrompt", std::move(with_ids));
  schemas.set("EncoderPrompt",
              one_of("What the encoder reads.", {"PromptText", "PromptTokenIds", "TextPrompt", "TokensPrompt",
                                                 "TokensPromptAlias", "MediaPrompt", "MediaTokensPrompt"}));
  schemas.set("DecoderPrompt", one_of("What the answer continues.", {"PromptText", "PromptTokenIds", "TextPrompt",
                                                                     "TokensPrompt", "TokensPromptAlias"}));
  schemas.set("ExplicitPrompt",
              prompt_form("Both sides.",
                          json_object({{"encoder_prompt", schema_ref("EncoderPrompt")},
                                       {"decoder_prompt", any_of({schema_ref("DecoderPrompt"), type("null")})}}),
                          "encoder_prompt"));
  schemas.set("Prompt", one_of("The encoder's prompt, or both sides.",
                               {"PromptText", "PromptTokenIds", "TextPrompt", "TokensPrompt", "TokensPromptAlias",
                                "MediaPrompt", "MediaTokensPrompt", "ExplicitPrompt"}));
  return schemas;
}

Json message_schemas() {
  const Json text = type("string"), name = or_null(text);
  const auto part = [&](std::string_view kind, std::string_view member, Json value) {
    const Json word = json_object({{"type", "string"}, {"enum", Json::Array{kind}}});
    return object_schema(json_object({{"type", word}, {member, std::move(value)}}), {"type", member});
  };
  Json url = object_schema(
      json_object({{"url", json_object({{"type", "string"}, {"pattern", "^[Dd][Aa][Tt][Aa]:"}})}, {"detail", name}}),
      {"url"});
  url.set("description", "A data: URL: others are not fetched. detail has no effect.");
  Json data = json_object({{"type", "string"}, {"contentEncoding", "base64"}});
  const Json audio = object_schema(json_object({{"data", std::move(data)}, {"format", name}}), {"data"});
  Json schemas = json_object({{"ChatTextPart", part("text", "text", text)},
                              {"ChatImagePart", part("image_url", "image_url", std::move(url))},
                              {"ChatAudioPart", part("input_audio", "input_audio", audio)}});
  const auto parts = [](Json one) {
    return any_of({type("string"), json_object({{"type", "array"}, {"items", std::move(one)}, {"minItems", 1}})});
  };
  const Json nothing = json_object({{"enum", Json::Array{Json(), Json::array()}}});
  const auto message = [&](std::string_view doc, Json::Array roles, Json content) {
    Json properties = json_object({{"role", json_object({{"type", "string"}, {"enum", std::move(roles)}})},
                                   {"content", std::move(content)},
                                   {"name", name}});
    for (const char* refused : {"tool_calls", "function_call", "audio"}) properties.set(refused, nothing);
    Json schema = object_schema(std::move(properties), {"role", "content"});
    schema.set("description", doc);
    return schema;
  };
  schemas.set("ChatUserMessage",
              message("What is asked.", {"user"},
                      parts(one_of("A part of a message.", {"ChatTextPart", "ChatImagePart", "ChatAudioPart"}))));
  schemas.set("ChatOtherMessage", message("What directs the model, or was answered before.",
                                          {"system", "developer", "assistant"}, parts(schema_ref("ChatTextPart"))));
  schemas.set("ChatMessage", one_of("A turn of a chat. Models without a chat template take one, of the role user.",
                                    {"ChatUserMessage", "ChatOtherMessage"}));
  return schemas;
}

}  // namespace transept

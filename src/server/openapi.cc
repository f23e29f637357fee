#include "server/openapi.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "server/openapi_fields.h"
#include "server/openapi_live.h"
#include "server/openapi_replies.h"

namespace transept {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kText = "text/plain";

// A body that takes the fields of `route`.
struct PostRoute {
  std::string_view path;
  std::string_view id;  // operationId, and of the body's schema with "Request"
  std::string_view doc;
  FieldRoutes route;
  std::string_view reply;          // a schema
  std::string_view streamed = {};  // a schema of events; "": it does not stream
};
constexpr PostRoute kPosts[] = {
    {"/v1/completions", "Completion", "Answers to prompts.", field_routes::kCompletions, "Completion",
     "CompletionChunk"},
    {"/v1/chat/completions", "ChatCompletion", "Answers to a chat.", field_routes::kChat, "ChatCompletion",
     "ChatCompletionChunk"},
    {"/v1/score", "Score", "How likely the model finds given answers.", field_routes::kScore, "Score"},
    {"/v1/translate", "Translation", "Texts in another language.", field_routes::kTranslate, "Translations"},
    {"/v1/encode", "Encode", "The encoder's output, sent to a decode instance. For other instances of the fleet alone.",
     field_routes::kEncode, "Encoded"},
    {"/tokenize", "Tokenization", "Token ids of a text.", field_routes::kTokenize, "Tokens"},
    {"/detokenize", "Detokenization", "The text of token ids.", field_routes::kDetokenize, "Text"},
};
struct AudioRoute {
  std::string_view path, id, doc;
  FieldRoutes route;
};
constexpr AudioRoute kAudioPosts[] = {
    {"/v1/audio/transcriptions", "Transcription", "What is said in audio.", field_routes::kTranscriptions},
    {"/v1/audio/translations", "AudioTranslation", "What is said in audio, in English.",
     field_routes::kAudioTranslations},
};

// Who may ask without a key, where keys are asked for.
enum class Guard : uint8_t { kKey, kKeyUnlessLocal, kNone };
struct GetRoute {
  std::string_view path, id, doc;
  std::string_view content_type;
  std::string_view reply;  // a schema; "": a text or an object of no fixed form
  Guard guard = Guard::kKey;
};
constexpr GetRoute kGets[] = {
    {"/v1/models", "listModels", "Every name that the model is served by.", kJson, "Models"},
    {"/v1/models/{model}", "getModel", "One of them.", kJson, "Model"},
    {"/health", "health", "As /health/ready.", kJson, "Health", Guard::kNone},
    {"/health/live", "healthLive", "The process answers.", kJson, "Health", Guard::kNone},
    {"/health/ready", "healthReady", "New work is taken; 503 while loading, draining, or after a failure.", kJson,
     "Health", Guard::kNone},
    {"/version", "version", "Of the binary.", kJson, "Version"},
    {"/metrics", "metrics", "Prometheus' text format.", kText, "", Guard::kKeyUnlessLocal},
    {"/debug/state", "debugState", "The queue and the KV blocks, for this machine alone.", kJson, "DebugState",
     Guard::kKeyUnlessLocal},
    {"/openapi.json", "openapi", "This document.", kJson, ""},
};

Json content(std::string_view content_type, Json schema) {
  return json_object({{content_type, json_object({{"schema", std::move(schema)}})}});
}

void set_errors(Json& responses, std::initializer_list<int> statuses, bool has_keys) {
  for (const int status : statuses) {
    if (status == 401 && !has_keys) continue;
    const std::string name = str_cat("#/components/responses/Error", status);
    responses.set(str_cat(status), json_object({{"$ref", name}}));
  }
}

void set_post_errors(Json& responses, bool has_keys) {
  set_errors(responses, {400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503, 504}, has_keys);
}

Json post_operation(const PostRoute& route, bool has_keys) {
  Json answers = content(kJson, schema_ref(route.reply));
  if (!route.streamed.empty()) {
    answers.set(kEvents, json_object({{"schema", schema_ref(route.streamed)}}));
  }
  Json responses = json_object({{"200", json_object({{"description", route.doc}, {"content", std::move(answers)}})}});
  set_post_errors(responses, has_keys);
  const Json body =
      json_object({{"required", true}, {"content", content(kJson, schema_ref(str_cat(route.id, "Request")))}});
  return json_object({{"operationId", str_cat("create", route.id)},
                      {"summary", route.doc},
                      {"requestBody", body},
                      {"responses", std::move(responses)}});
}

Json audio_operation(const AudioRoute& route, bool has_keys) {
  const Json whole = json_object(
      {{"schema",
        json_object({{"anyOf", Json::Array{schema_ref("VerboseTranscription"), schema_ref("Transcription")}}})}});
  const Json events = json_object(
      {{"schema",
        json_object({{"oneOf", Json::Array{schema_ref("TranscriptDelta"), schema_ref("TranscriptSegment"),
                                           schema_ref("TranscriptProgress"), schema_ref("TranscriptDone")}}})}});
  const Json lines = json_object({{"schema", json_object({{"type", "string"}})}});
  const Json answers = json_object(
      {{kJson, whole}, {kText, lines}, {"text/vtt", lines}, {"application/x-subrip", lines}, {kEvents, events}});
  Json responses = json_object({{"200", json_object({{"description", route.doc}, {"content", answers}})}});
  set_post_errors(responses, has_keys);
  const Json body = json_object(
      {{"required", true}, {"content", content("multipart/form-data", schema_ref(str_cat(route.id, "Request")))}});
  return json_object({{"operationId", str_cat("create", route.id)},
                      {"summary", route.doc},
                      {"requestBody", body},
                      {"responses", std::move(responses)}});
}

Json keyless() { return Json::object(); }
Json bearer() { return json_object({{"bearer", Json::array()}}); }

Json get_operation(const GetRoute& route, bool has_keys) {
  const Json schema = !route.reply.empty() ? schema_ref(route.reply)
                                           : json_object({{"type", route.content_type == kText ? "string" : "object"}});
  Json responses = json_object(
      {{"200", json_object({{"description", route.doc}, {"content", content(route.content_type, schema)}})}});
  Json operation = json_object({{"operationId", route.id}, {"summary", route.doc}});
  if (route.path.ends_with("{model}")) {
    const Json name = json_object(
        {{"name", "model"}, {"in", "path"}, {"required", true}, {"schema", json_object({{"type", "string"}})}});
    operation.set("parameters", Json::Array{name});
    set_errors(responses, {404}, has_keys);
  }
  if (route.guard == Guard::kNone) {
    operation.set("security", Json::array());
    const bool is_live = route.path == "/health/live";
    if (!is_live) {
      responses.set("503", json_object({{"description", "It is not; status says why."},
                                        {"content", content(kJson, schema_ref("Health"))}}));
    }
  } else {
    set_errors(responses, {401}, has_keys);
    if (has_keys && route.guard == Guard::kKeyUnlessLocal) operation.set("security", Json::Array{keyless(), bearer()});
  }
  set_errors(responses, {403}, has_keys);
  operation.set("responses", std::move(responses));
  return operation;
}

// What a server of this model and role has.
struct Served {
  bool has_audio = false;
  bool has_live = false;
  std::optional<InstanceRole> role;

  bool has(const PostRoute& route) const { return has(route.route); }
  bool has(const AudioRoute& route) const { return has_audio && has(route.route); }

 private:
  bool has(FieldRoutes route) const {
    if (route == field_routes::kEncode) return role == InstanceRole::kEncode;
    const bool decodes = route != field_routes::kTokenize && route != field_routes::kDetokenize;
    return !decodes || role != InstanceRole::kEncode;
  }
};

Json delete_cache_operation(bool has_keys) {
  const Json reply = json_object({{"object", json_object({{"type", "string"}})},
                                  {"deleted", json_object({{"type", "boolean"}})},
                                  {"num_freed_blocks", json_object({{"type", "integer"}})}});
  const Json schema = json_object({{"type", "object"}, {"properties", reply}});
  Json responses =
      json_object({{"200", json_object({{"description", "What was kept is free; what requests use goes with them."},
                                        {"content", content(kJson, schema)}})}});
  set_errors(responses, {401, 403, 503}, true);
  Json operation =
      json_object({{"operationId", "deleteCache"},
                   {"summary", "Gives up all that is kept for later requests. For an admin key (--admin-api-key)."}});
  if (has_keys) operation.set("security", Json::Array{bearer()});
  operation.set("responses", std::move(responses));
  return operation;
}

void append(Json& object, const Json& members) {
  for (const auto& [name, value] : members.as_object()) object.set(name, value);
}

Json paths(bool has_keys, const Served& served) {
  Json all = Json::object();
  for (const PostRoute& route : kPosts) {
    if (served.has(route)) all.set(route.path, json_object({{"post", post_operation(route, has_keys)}}));
  }
  for (const AudioRoute& route : kAudioPosts) {
    if (served.has(route)) all.set(route.path, json_object({{"post", audio_operation(route, has_keys)}}));
  }
  if (served.has_live) append(all, live_paths(has_keys));
  if (served.role != InstanceRole::kEncode) {
    all.set("/v1/cache", json_object({{"delete", delete_cache_operation(has_keys)}}));
  }
  for (const GetRoute& route : kGets) all.set(route.path, json_object({{"get", get_operation(route, has_keys)}}));
  return all;
}

Json schemas(const RequestLimits& limits, const Served& served) {
  Json all = Json::object();
  for (const PostRoute& route : kPosts) {
    if (served.has(route)) all.set(str_cat(route.id, "Request"), body_schema(route.route, limits));
  }
  append(all, prompt_schemas());
  append(all, message_schemas());
  append(all, reply_schemas());
  if (!served.has(kAudioPosts[0])) return all;
  for (const AudioRoute& route : kAudioPosts) all.set(str_cat(route.id, "Request"), form_schema(route.route, limits));
  append(all, audio_reply_schemas());
  return all;
}

}  // namespace

Json openapi_document(const ServerContext& context) {
  const bool has_keys = !context.options.api_keys.empty();
  const Served served{context.speech != nullptr, context.realtime != nullptr, context.options.role};
  Json components =
      json_object({{"schemas", schemas(context.options.limits, served)}, {"responses", error_responses()}});
  Json document = json_object({{"openapi", "3.1.0"},
                               {"info", json_object({{"title", "Transept"},
                                                     {"description",
                                                      "Encoder/decoder transformers behind OpenAI's API. "
                                                      "Fields that are not known are passed over; null "
                                                      "is the same as absent."},
                                                     {"version", context.options.version}})}});
  if (has_keys) {
    components.set("securitySchemes", json_object({{"bearer", json_object({{"type", "http"}, {"scheme", "bearer"}})}}));
    document.set("security", Json::Array{bearer()});
  }
  document.set("paths", paths(has_keys, served));
  document.set("components", std::move(components));
  return document;
}

}  // namespace transept

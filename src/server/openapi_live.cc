#include "server/openapi_live.h"

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "server/client_secrets.h"
#include "server/openapi_fields.h"

namespace transept {
namespace {

Json type(std::string_view name) { return json_object({{"type", name}}); }

Json answers(std::string_view status, Json answer, std::initializer_list<int> errors, bool has_keys) {
  Json responses = json_object({{status, std::move(answer)}});
  for (const int error : errors) {
    if (error == 401 && !has_keys) continue;
    responses.set(str_cat(error), json_object({{"$ref", str_cat("#/components/responses/Error", error)}}));
  }
  return responses;
}

Json query(std::string_view name, std::string_view doc, Json schema) {
  return json_object({{"name", name}, {"in", "query"}, {"description", doc}, {"schema", std::move(schema)}});
}

Json socket_operation(bool has_keys) {
  const Json intent = json_object({{"type", "string"}, {"enum", Json::Array{"transcription"}}});
  return json_object(
      {{"operationId", "openRealtime"},
       {"summary",
        "Live transcription by the events of OpenAI's transcription sessions, over a WebSocket (docs/live.md)."},
       {"parameters", Json::Array{query("intent", "What the session is for.", intent),
                                  query("model", "A name that is served; absent: the first.", type("string"))}},
       {"responses",
        answers("101", json_object({{"description", "The WebSocket is open; session.created comes first."}}),
                {400, 401, 403, 404, 429, 503}, has_keys)}});
}

Json secret_operation(bool has_keys) {
  const Json seconds = json_object({{"type", "integer"},
                                    {"minimum", ClientSecrets::kMinSeconds},
                                    {"maximum", ClientSecrets::kMaxSeconds},
                                    {"default", ClientSecrets::kDefaultSeconds}});
  const Json anchor = json_object({{"type", "string"}, {"enum", Json::Array{"created_at"}}});
  const Json after =
      json_object({{"type", "object"}, {"properties", json_object({{"anchor", anchor}, {"seconds", seconds}})}});
  const Json asked = json_object(
      {{"type", "object"}, {"properties", json_object({{"expires_after", after}, {"session", type("object")}})}});
  const Json given =
      json_object({{"value", type("string")}, {"expires_at", type("integer")}, {"session", type("object")}});
  const Json reply = json_object(
      {{"type", "object"}, {"properties", given}, {"required", Json::Array{"value", "expires_at", "session"}}});
  const auto content = [](const Json& schema) {
    return json_object({{"application/json", json_object({{"schema", schema}})}});
  };
  const Json answer =
      json_object({{"description", "A key for pages, good for GET /v1/realtime alone."}, {"content", content(reply)}});
  return json_object({{"operationId", "createRealtimeClientSecret"},
                      {"summary", "A key of a short life, for a page whose visitors must not see an API key."},
                      {"requestBody", json_object({{"required", true}, {"content", content(asked)}})},
                      {"responses", answers("200", answer, {400, 401, 403, 408, 413, 415, 429, 500, 503}, has_keys)}});
}

}  // namespace

Json live_paths(bool has_keys) {
  return json_object({{"/v1/realtime", json_object({{"get", socket_operation(has_keys)}})},
                      {"/v1/realtime/client_secrets", json_object({{"post", secret_operation(has_keys)}})}});
}

}  // namespace transept

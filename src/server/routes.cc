#include "server/routes.h"

#include "server/chat.h"
#include "server/completions.h"
#include "server/info_routes.h"
#include "server/instance_routes.h"
#include "server/openapi.h"
#include "server/realtime.h"
#include "server/text_routes.h"
#include "server/transcriptions.h"

namespace transept {
namespace {

constexpr std::string_view kModels = "/v1/models/";

HttpResponse models(const ServerContext& context, const HttpRequest&) { return get_models(context); }
HttpResponse model(const ServerContext& context, const HttpRequest& request) {
  return get_model(context, std::string_view(request.path).substr(kModels.size()));
}
HttpResponse version(const ServerContext& context, const HttpRequest&) { return get_version(context); }
HttpResponse metrics(const ServerContext& context, const HttpRequest&) { return get_metrics(context); }
HttpResponse openapi(const ServerContext& context, const HttpRequest&) {
  return {.body = openapi_document(context).dump()};
}
HttpResponse ready(const ServerContext& context, const HttpRequest&) { return get_health_ready(context); }
HttpResponse live(const ServerContext& context, const HttpRequest&) { return get_health_live(context); }

void transcribe(const ServerContext& context, const ApiCallPtr& call) { handle_transcription(context, call, false); }
void translate_audio(const ServerContext& context, const ApiCallPtr& call) {
  handle_transcription(context, call, true);
}

constexpr Route kRoutes[] = {
    {.method = "POST", .pattern = "/v1/completions", .kind = RouteKind::kWork, .work = handle_completion},
    {.method = "POST", .pattern = "/v1/chat/completions", .kind = RouteKind::kWork, .work = handle_chat},
    {.method = "POST", .pattern = "/v1/audio/transcriptions", .kind = RouteKind::kSpeech, .work = transcribe},
    {.method = "POST", .pattern = "/v1/audio/translations", .kind = RouteKind::kSpeech, .work = translate_audio},
    {.method = "POST", .pattern = "/v1/score", .kind = RouteKind::kWork, .work = handle_score},
    {.method = "POST", .pattern = "/v1/translate", .kind = RouteKind::kWork, .work = handle_translate},
    {.method = "POST",
     .pattern = "/v1/encode",
     .kind = RouteKind::kWork,
     .work = handle_encode,
     .is_public = true,
     .only_encodes = true},
    {.method = "POST", .pattern = "/tokenize", .kind = RouteKind::kTokens, .work = handle_tokenize},
    {.method = "POST", .pattern = "/detokenize", .kind = RouteKind::kTokens, .work = handle_detokenize},
    {.method = "GET",
     .pattern = "/v1/inputs/{input}",
     .kind = RouteKind::kPeer,
     .info = answer_input,
     .is_public = true},
    {.method = "POST",
     .pattern = "/v1/inputs/{input}",
     .kind = RouteKind::kPeer,
     .info = answer_input,
     .is_public = true},
    {.method = "GET", .pattern = "/v1/realtime", .kind = RouteKind::kSocket, .upgrade = open_realtime, .is_live = true},
    {.method = "POST",
     .pattern = "/v1/realtime/client_secrets",
     .kind = RouteKind::kTokens,
     .work = handle_client_secret,
     .is_live = true},
    {.method = "DELETE", .pattern = "/v1/cache", .kind = RouteKind::kAdmin, .info = delete_cache},
    {.method = "GET", .pattern = "/v1/models", .info = models},
    {.method = "GET", .pattern = "/v1/models/{model}", .info = model},
    {.method = "GET", .pattern = "/version", .info = version},
    {.method = "GET", .pattern = "/openapi.json", .info = openapi},
    {.method = "GET", .pattern = "/health", .info = ready, .is_public = true},
    {.method = "GET", .pattern = "/health/live", .info = live, .is_public = true},
    {.method = "GET", .pattern = "/health/ready", .info = ready, .is_public = true},
    {.method = "GET", .pattern = "/metrics", .info = metrics, .is_local_public = true},
    {.method = "GET", .pattern = "/debug/state", .info = get_debug_state, .is_local_public = true},
};

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('}')) return pattern == path;
  const std::string_view prefix = pattern.substr(0, pattern.find('{'));
  return path.size() > prefix.size() && path.starts_with(prefix);
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

bool is_served(const Route& route, std::optional<InstanceRole> role) {
  if (route.kind == RouteKind::kPeer) return role == InstanceRole::kDecode;
  if (route.only_encodes) return role == InstanceRole::kEncode;
  if (route.kind == RouteKind::kAdmin) return role != InstanceRole::kEncode;
  const bool decodes = route.kind == RouteKind::kWork || route.kind == RouteKind::kSpeech ||  //
                       route.kind == RouteKind::kSocket;
  return !decodes || role != InstanceRole::kEncode;
}

const Route* find_route(std::string_view method, std::string_view path, std::span<const Route> more) {
  for (const std::span<const Route> table : {std::span<const Route>(kRoutes), more}) {
    for (const Route& route : table) {
      const bool is_head = method == "HEAD" && route.kind != RouteKind::kSocket;
      if (route.method == (is_head ? "GET" : method) && matches(route.pattern, path)) return &route;
    }
  }
  return nullptr;
}

std::string allowed_methods(std::string_view path, std::span<const Route> more) {
  std::string methods;
  for (const std::span<const Route> table : {std::span<const Route>(kRoutes), more}) {
    for (const Route& route : table) {
      if (!matches(route.pattern, path)) continue;
      const bool has_head = route.method == "GET" && route.kind != RouteKind::kSocket;
      methods += str_cat(methods.empty() ? "" : ", ", route.method, has_head ? ", HEAD" : "");
    }
  }
  return methods;
}

}  // namespace transept

#include "apps/serve_banner.h"

#include <cstdio>

#include "apps/version.h"
#include "base/log.h"
#include "server/routes.h"

namespace transept {

std::string format_seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds(duration));
  return text;
}

void print_banner(const Server& server, Duration startup) {
  const ServerContext& context = *server.context();
  const ServerOptions& options = context.options;
  const EngineSnapshot engine = context.engine.snapshot();
  const std::string url = "http://" + server.http().address();
  log_info("transept ", kVersion, " serves ", join(options.served_model_names, ", "), " (",
           context.model.model_config.model_type, context.speech != nullptr ? ", speech" : "", ") at ", url,
           ", ready after ", format_seconds(startup));
  log_info("  page ", url, "/   metrics ", url, "/metrics   schema ", url, "/openapi.json");
  std::string api;
  for (const Route& route : routes()) {
    if (!is_served(route, options.role) || route.kind == RouteKind::kPeer) continue;
    if (route.kind == RouteKind::kInfo || (route.kind == RouteKind::kSpeech && context.speech == nullptr)) continue;
    if (route.kind == RouteKind::kSocket || (route.is_live && context.realtime == nullptr)) continue;
    api += str_cat(api.empty() ? "" : " ", route.pattern);
  }
  log_info("  POST ", api);
  if (context.realtime != nullptr) log_info("  live ws://", server.http().address(), "/v1/realtime");
  if (context.instance != nullptr) {
    log_info("  instance ", context.instance->id().name, ", role ", name(context.instance->role()),
             ", of the fleet of ", "--broker");
  }
  const int32_t replicas = context.model.config.replicas;
  log_info("  ", engine.blocks.total, " KV blocks, ", replicas * context.model.config.max_num_seqs,
           " sequences at once, ", replicas > 1 ? str_cat(replicas, " replicas, ") : "", options.queue.max_requests,
           " requests may wait");
  if (!server.http().is_loopback() && options.api_keys.empty()) {
    log_warning("everybody who reaches ", server.http().address(), " may use this server: --api-key asks for a key");
  }
  if (options.log_prompts) log_warning("--log-prompts: what users send is written to the log");
}

}  // namespace transept

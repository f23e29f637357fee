// Routes about the server itself. They run on I/O threads, and do not wait for a step of the engine, unless they say
// so. Thread-safe functions.
#pragma once

#include "server/server_context.h"

namespace transept {

HttpResponse get_models(const ServerContext& context);
// 404 for a name that is not served.
HttpResponse get_model(const ServerContext& context, std::string_view name);
HttpResponse get_health_live(const ServerContext& context);
HttpResponse get_health_ready(
    const ServerContext& context);  // 503 while loading, while draining, and after the engine has failed
HttpResponse get_version(const ServerContext& context);
HttpResponse get_metrics(const ServerContext& context);
HttpResponse get_debug_state(const ServerContext& context, const HttpRequest& request);  // 403 unless from loopback
// Gives up what the engine keeps for later requests. Waits for its current step: for a thread of RouteKind::kAdmin.
HttpResponse delete_cache(const ServerContext& context, const HttpRequest& request);

}  // namespace transept

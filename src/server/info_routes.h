// Routes that ask the server about itself. They answer on the I/O thread: nothing here waits for the engine.
#pragma once

#include "server/server_context.h"

namespace transept {

HttpResponse get_models(const ServerContext& context);
// Errors: 404 for a name that is not served.
HttpResponse get_model(const ServerContext& context, std::string_view name);
HttpResponse get_health_live(const ServerContext& context);
HttpResponse get_health_ready(
    const ServerContext& context);  // 503 while loading, while draining, and once the engine failed
HttpResponse get_version(const ServerContext& context);
HttpResponse get_metrics(const ServerContext& context);
HttpResponse get_debug_state(const ServerContext& context, const HttpRequest& request);  // 403 unless from this machine

}  // namespace transept

#include "apps/fleet_flags.h"

#include <algorithm>
#include <random>

#include "apps/serve_flags.h"

namespace transept {
namespace {

constexpr const char* kProxy = "Proxy";

FlagSpec broker_flag(const char* group) {
  return {"broker", "URL", "",
          "where the instances of the fleet find each other: local:PATH or redis://HOST[:PORT][/DB]", group};
}
FlagSpec namespace_flag(const char* group) {
  return {"ec-namespace", "NAME", "default", "the fleet, where several share a Redis server", group};
}

}  // namespace

std::vector<FlagSpec> proxy_flags() {
  return {
      broker_flag(kProxy),
      namespace_flag(kProxy),
      {"host", "ADDRESS", "127.0.0.1", "address or name to listen on; 0.0.0.0 or :: for all", kProxy},
      {"port", "N", "8000", "port to listen on; 0: any that is free", kProxy},
      {"shutdown-timeout", "SECONDS", "30", "how long SIGTERM and SIGINT wait for what is in flight", kProxy},
      {"io-threads", "N", "2", "threads that move bytes", kProxy},
      {"max-queued-requests", "N", "1024", "requests in work, each on a thread; more are 429", kProxy},
      {"max-connections", "N", "4096", "connections that are open at once", kProxy},
      {"max-live-sessions", "N", "1024", "sessions of live audio that are open at once; more are 503", kProxy},
      {"max-upload-size", "SIZE", "25MiB", "size of an audio file", kProxy},
      {"max-body-memory", "SIZE", "1GiB", "bodies of all requests in work; more are 429", kProxy},
      {"log-format", "text|json", "text", "how a line for every request is written", kProxy},
      {"hold", "auto|always|never", "never",
       "which requests wait here until their prompts are encoded: auto, those of several prompts; all with prompts of "
       "their own; or none, and decode instances ask",
       kProxy},
      {"proxy-url", "URL", "http://host:port", "how encode instances reach the proxy, for --hold", kProxy},
      {"ec-secret-file", "FILE", "",
       "secret that all instances share; without it a proxy holds requests for instances of this machine alone",
       kProxy},
  };
}

std::vector<FlagSpec> epd_status_flags() {
  constexpr const char* kStatus = "Status";
  return {broker_flag(kStatus), namespace_flag(kStatus), {"json", "", "", "as one JSON object", kStatus}};
}

StatusOr<std::string> broker_url(const Flags& flags) {
  const auto url = flags.text("broker");
  if (url.has_value() && !url->empty()) return *url;
  return invalid_argument("--broker is missing: where the instances of the fleet find each other");
}

namespace {

Status read_hold(const Flags& flags, Proxy::Options& proxy) {
  using Hold = ProxyService::Hold;
  const std::string hold = flags.text_or("hold", "never");
  if (hold != "auto" && hold != "always" && hold != "never") {
    return invalid_argument(flags.name_of("hold"), " ", hold, ": unknown; one of auto, always, never");
  }
  proxy.service.hold = hold == "auto" ? Hold::kSeveral : hold == "always" ? Hold::kAlways : Hold::kNever;
  proxy.held.url = flags.text_or("proxy-url", "");
  if (!proxy.held.url.empty()) {
    const Status url = HttpUrl::parse(proxy.held.url).status();
    if (!url.ok()) return with_prefix(url, flags.name_of("proxy-url"));
  }
  const auto path = flags.text("ec-secret-file");
  if (!path.has_value()) return ok_status();
  StatusOr<EcSecret> secret = EcSecret::read(*path);
  if (!secret.ok()) return with_prefix(secret.status(), flags.name_of("ec-secret-file"));
  proxy.held.secret = std::make_shared<const EcSecret>(std::move(secret).value());
  return ok_status();
}

}  // namespace

StatusOr<ProxySettings> proxy_settings(const Flags& flags) {
  ProxySettings settings;
  ASSIGN_OR_RETURN(settings.broker, broker_url(flags));
  settings.ns = flags.text_or("ec-namespace", settings.ns);
  HttpServer::Options& http = settings.proxy.http;
  http.host = flags.text_or("host", http.host);
  if (http.host.empty()) return invalid_argument(flags.name_of("host"), ": the address is empty");
  ASSIGN_OR_RETURN(const int64_t port, flags.integer("port", 0, 65535, 8000));
  ASSIGN_OR_RETURN(const int64_t io_threads, flags.integer("io-threads", 1, 64, 2));
  ASSIGN_OR_RETURN(const int64_t connections, flags.integer("max-connections", 1, 1 << 20, 4096));
  ASSIGN_OR_RETURN(const int64_t requests, flags.integer("max-queued-requests", 1, 1 << 14, 1024));
  ASSIGN_OR_RETURN(const int64_t sessions, flags.integer("max-live-sessions", 0, 1 << 20, 1024));
  ASSIGN_OR_RETURN(const double shutdown, flags.number("shutdown-timeout", 0, 86400, 30));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> upload, flags.bytes("max-upload-size"));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> bodies, flags.bytes("max-body-memory"));
  http.port = static_cast<uint16_t>(port);
  http.num_threads = static_cast<int>(io_threads);
  http.max_connections = static_cast<size_t>(connections);
  settings.proxy.service.max_requests = static_cast<int32_t>(requests);
  settings.proxy.service.max_websockets = static_cast<int32_t>(sessions);
  settings.shutdown_timeout = std::chrono::milliseconds(static_cast<int64_t>(shutdown * 1000));
  // A form has other fields than its file.
  constexpr uint64_t kOtherFields = uint64_t{2} << 20, kMost = uint64_t{1} << 40;
  if (upload.has_value()) {
    settings.proxy.service.max_body_bytes = static_cast<size_t>(std::min(*upload, kMost) + kOtherFields);
  }
  if (bodies.has_value()) settings.proxy.service.max_bodies_bytes = static_cast<size_t>(*bodies);
  ASSIGN_OR_RETURN(settings.proxy.service.log, log_options(flags));
  RETURN_IF_ERROR(read_hold(flags, settings.proxy));
  std::random_device random;
  settings.proxy.pool.seed = random();
  return settings;
}

}  // namespace transept

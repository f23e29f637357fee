// `transept proxy`: one address before the decode instances of a fleet.
#include <chrono>
#include <thread>

#include "apps/exit_codes.h"
#include "apps/fleet_flags.h"
#include "apps/interrupt.h"
#include "apps/verbs.h"
#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "proxy/proxy.h"
#include "startup/connect_broker.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "proxy";
constexpr auto kLook = std::chrono::milliseconds(50);

Status run(const ProxySettings& settings, int* exit_code) {
  catch_interrupts();
  if (settings.proxy.service.log.as_json) set_log_sink(write_json_notice);
  ASSIGN_OR_RETURN(const std::shared_ptr<Broker> broker,
                   connect_broker(settings.broker, settings.ns, std::chrono::seconds(10)));
  ASSIGN_OR_RETURN(const std::unique_ptr<Proxy> proxy, Proxy::start(settings.proxy, broker));
  log_info("proxy at http://", proxy->http().address(), ", for the decode instances of the fleet");
  while (!interrupted()) std::this_thread::sleep_for(kLook);
  log_info("shutting down: new requests are answered 503 (a second signal does not wait for those in flight)");
  if (proxy->drain(settings.shutdown_timeout, [] { return true; })) {
    *exit_code = kExitOk;
    return ok_status();
  }
  log_error("requests were cut off: they took longer than --shutdown-timeout");
  *exit_code = kExitSomeFailed;
  return ok_status();
}

}  // namespace

int run_proxy(const Flags& flags) {
  if (!flags.positional().empty()) return usage_error(kVerb, invalid_argument("takes no arguments, only flags"));
  raise_descriptor_limit();
  StatusOr<ProxySettings> settings = proxy_settings(flags);
  if (!settings.ok()) return usage_error(kVerb, settings.status());
  int exit_code = kExitOk;
  const Status status = run(*settings, &exit_code);
  return status.ok() ? exit_code : usage_error(kVerb, status);
}

}  // namespace transept

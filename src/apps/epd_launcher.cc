#include "apps/epd_launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/epd_broker.h"
#include "apps/epd_supervisor.h"
#include "apps/interrupt_count.h"
#include "apps/serve_banner.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr Duration kEndMargin = std::chrono::seconds(5);  // for an instance to end once its requests have

std::string places_text(const EpdInstance& instance) {
  const std::string threads = str_cat(instance.num_threads, instance.num_threads == 1 ? " thread" : " threads");
  if (instance.cpus == "none") return threads + ", not pinned";
  return str_cat(threads, instance.num_threads == 1 ? " on processor " : " on processors ", instance.cpus);
}

// Asks the broker whether every instance is there, and the proxy whether it forwards to each decode instance.
class Readiness final {
 public:
  // `proxy`: may be null.
  Readiness(const EpdPlan& plan, std::shared_ptr<Broker> broker, const Proxy* proxy, const Clock& clock)
      : plan_(plan), broker_(std::move(broker)), proxy_(proxy), clock_(clock), begin_(clock.now()) {}

  std::optional<std::string> line() {
    const StatusOr<std::vector<InstanceRecord>> peers = broker_->peers();
    if (!peers.ok()) return std::nullopt;
    std::string names, url = proxy_ == nullptr ? "" : str_cat("http://", proxy_->http().address());
    for (const EpdInstance& instance : plan_.instances) {
      const auto at = std::ranges::find(*peers, instance.name, [](const InstanceRecord& peer) { return peer.id.name; });
      if (at == peers->end()) return std::nullopt;
      const bool is_behind_proxy = proxy_ != nullptr && instance.role == InstanceRole::kDecode;
      if (is_behind_proxy && !proxy_->pool().is_well(at->id, clock_.now())) return std::nullopt;
      names += str_cat(names.empty() ? "" : ", ", instance.name);
      if (url.empty() && instance.role == InstanceRole::kDecode) url = at->url;
    }
    return str_cat("--epd ", plan_.shape.text(), ": ready after ", format_seconds(clock_.now() - begin_), ": ", names,
                   "; requests go to ", url);
  }

 private:
  const EpdPlan& plan_;
  const std::shared_ptr<Broker> broker_;
  const Proxy* const proxy_;
  const Clock& clock_;
  const TimePoint begin_;
};

void log_started(const EpdPlan& plan, const std::string& name, pid_t pid) {
  const auto at = std::ranges::find(plan.instances, name, &EpdInstance::name);
  log_info("  ", name, ": ", transept::name(at->role), ", process ", pid, ", ", places_text(*at));
}

}  // namespace

StatusOr<int> run_epd(const Flags& flags, std::span<const FlagSpec> table, const EpdSettings& settings) {
  const SteadyClock clock;
  const EpdPlan& plan = settings.plan;
  if (!settings.num_interrupts) count_interrupts();
  ASSIGN_OR_RETURN(const EpdBroker hub, start_epd_broker(plan.redis_url));
  const std::shared_ptr<Broker>& broker = hub.broker;
  if (hub.server == nullptr) {
    log_info("--epd ", plan.shape.text(), ": broker of --epd-broker, --ec-namespace ", hub.links.ns);
  } else {
    log_info("--epd ", plan.shape.text(), ": broker at ", hub.links.folder, "/", kEpdBroker, ", in process ",
             ::getpid());
  }

  std::unique_ptr<Proxy> proxy;
  if (settings.proxy.has_value()) {
    ASSIGN_OR_RETURN(proxy, Proxy::start(*settings.proxy, broker));
    log_info("  proxy at http://", proxy->http().address(), ", in this process");
  }

  std::vector<SupervisedChild> children;
  const std::vector<std::string> environment = epd_environment(::environ, hub.links);
  for (const EpdInstance& instance : plan.instances) {
    children.push_back(
        {.name = instance.name,
         .role = instance.role,
         .command = {.program = settings.program,
                     .arguments = epd_arguments(flags, table, settings.model, instance, hub.links,
                                                proxy != nullptr && instance.role == InstanceRole::kDecode),
                     .environment = environment}});
  }
  Readiness readiness(plan, broker, proxy.get(), clock);
  EpdSupervisor::Options options;
  options.restarts = settings.restarts;
  options.end_timeout = settings.shutdown_timeout + kEndMargin;
  options.num_interrupts = settings.num_interrupts ? settings.num_interrupts : &num_interrupts;
  options.ready_line = [&] { return readiness.line(); };
  options.on_started = [&](const SupervisedChild& child, pid_t pid) { log_started(plan, child.name, pid); };
  options.write_line = write_child_line;
  if (proxy != nullptr) options.on_ending = [&] { proxy->begin_drain(); };
  return EpdSupervisor(std::move(children), std::move(options), clock).run();
}

}  // namespace transept

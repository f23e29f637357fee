#include "proxy/proxy.h"

#include <random>
#include <utility>
#include <vector>

#include "base/log.h"

namespace transept {

StatusOr<std::unique_ptr<Proxy>> Proxy::start(const Options& options, std::shared_ptr<Broker> broker) {
  std::unique_ptr<Proxy> proxy(new Proxy(options, std::move(broker)));
  proxy->service_ = std::make_unique<ProxyService>(options.service, proxy->pool_);
  ASSIGN_OR_RETURN(proxy->server_, HttpServer::start(options.http, *proxy->service_));
  proxy->begin_holding();
  proxy->follower_ = std::thread([self = proxy.get()] { self->follow_records(); });
  return proxy;
}

void Proxy::begin_holding() {
  if (options_.service.hold == ProxyService::Hold::kNever) return;
  HeldInputs::Options held = options_.held;
  if (held.url.empty()) held.url = str_cat("http://", server_->address());
  if (held.url.starts_with("http://0.0.0.0:") || held.url.starts_with("http://[::]:")) {
    return log_info("no request is held: --proxy-url has to say how encode instances reach the proxy");
  }
  std::random_device random;
  if (held.self.name.empty()) held.self.name = "proxy";
  held.self.incarnation = (uint64_t{random()} << 32 | random()) | 1;
  held_ = std::make_unique<HeldInputs>(held, broker_);
  service_->set_held(held_.get());
}

void Proxy::follow_records() {
  while (true) {
    const auto records = broker_->peers();
    if (records.ok()) pool_.set_records(*records);
    service_->close_idle();
    const MutexLock lock(mutex_);
    const TimePoint next = std::chrono::steady_clock::now() + options_.look_for_instances;
    while (!is_stopped_ && std::chrono::steady_clock::now() < next) (void)changed_.wait_until(mutex_, next);
    if (is_stopped_) return;
  }
}

void Proxy::begin_drain() {
  service_->drain();
  server_->drain();
}

bool Proxy::drain(Duration timeout, const std::function<bool()>& keep_waiting) {
  begin_drain();
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!server_->wait_until_answered(std::chrono::milliseconds(50))) {
    if (!keep_waiting() || std::chrono::steady_clock::now() >= end) return false;
  }
  return true;
}

void Proxy::stop() {
  if (server_ != nullptr) server_->stop();
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  if (follower_.joinable()) follower_.join();
  service_.reset();
}

}  // namespace transept

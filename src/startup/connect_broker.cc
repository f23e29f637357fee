#include "startup/connect_broker.h"

#include <string_view>
#include <thread>

#include "disagg/local_broker.h"

namespace transept {
namespace {

constexpr std::string_view kLocal = "local:";

TimePoint steady_now() { return std::chrono::steady_clock::now(); }

StatusOr<std::string> local_path(const std::string& url) {
  if (url.starts_with(kLocal) && url.size() > kLocal.size()) return url.substr(kLocal.size());
  if (url.starts_with("rediss://")) {
    return unimplemented("--broker rediss://: TLS is not spoken to Redis: use a private network, WireGuard or stunnel");
  }
  // Without what follows: there may be a password.
  if (url.starts_with("redis://")) return unimplemented("--broker redis://: this version has local:PATH alone");
  return invalid_argument("--broker: expected local:PATH, of the socket of a broker");
}

}  // namespace

StatusOr<std::shared_ptr<Broker>> connect_broker(const std::string& url, Duration wait) {
  ASSIGN_OR_RETURN(const std::string path, local_path(url));
  ASSIGN_OR_RETURN(const std::shared_ptr<Broker> broker, LocalBroker::connect(path));
  const TimePoint end = steady_now() + wait;
  while (true) {
    const Status status = broker->peers().status();
    if (status.ok()) return broker;
    if (steady_now() >= end) return with_prefix(status, str_cat("--broker ", url));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace transept

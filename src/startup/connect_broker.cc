#include "startup/connect_broker.h"

#include <string_view>
#include <thread>

#include "base/clock.h"
#include "disagg/local_broker.h"
#include "disagg/redis_broker.h"

namespace transept {
namespace {

constexpr std::string_view kLocal = "local:";
constexpr auto kAskAgain = std::chrono::milliseconds(50);

StatusOr<std::shared_ptr<Broker>> connect_once(const std::string& url, const std::string& ns,
                                               const std::shared_ptr<std::atomic<int64_t>>& num_too_large) {
  if (is_local_broker(url)) {
    ASSIGN_OR_RETURN(std::shared_ptr<Broker> broker, LocalBroker::connect(url.substr(kLocal.size())));
    RETURN_IF_ERROR(broker->peers().status());
    return broker;
  }
  ASSIGN_OR_RETURN(const RedisUrl parsed, parse_redis_url(url));
  RedisBroker::Options options;
  options.ns = ns;
  options.num_too_large = num_too_large;
  ASSIGN_OR_RETURN(std::shared_ptr<Broker> broker, RedisBroker::connect(parsed, options));
  return broker;
}

}  // namespace

bool is_local_broker(std::string_view url) { return url.starts_with(kLocal) && url.size() > kLocal.size(); }

StatusOr<std::shared_ptr<Broker>> connect_broker(const std::string& url, const std::string& ns, Duration wait,
                                                 const std::shared_ptr<std::atomic<int64_t>>& num_too_large) {
  if (!is_local_broker(url) && !url.starts_with("redis")) {
    // Not echoed: there may be a password.
    return invalid_argument("--broker: expected local:PATH, of the socket of a broker, or redis://HOST[:PORT][/DB]");
  }
  const TimePoint end = steady_now() + wait;
  while (true) {
    StatusOr<std::shared_ptr<Broker>> broker = connect_once(url, ns, num_too_large);
    if (broker.ok()) return broker;
    if (!absl::IsUnavailable(broker.status()) || steady_now() >= end) {
      return with_prefix(broker.status(), is_local_broker(url) ? str_cat("--broker ", url) : "--broker");
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

}  // namespace transept

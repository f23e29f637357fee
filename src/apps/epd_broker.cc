#include "apps/epd_broker.h"

#include <cstdio>
#include <random>

#include "disagg/local_broker.h"
#include "startup/connect_broker.h"

namespace transept {
namespace {

constexpr Duration kWaitForRedis = std::chrono::seconds(2);  // it may be starting

uint64_t draw_id() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string socket_of(const PrivateFolder& folder) { return str_cat(folder.path(), "/", kEpdBroker); }

StatusOr<std::shared_ptr<Broker>> connect_redis(const EpdLinks& links) {
  constexpr std::string_view kThere = "--broker", kHere = "--epd-broker";
  auto broker = connect_broker(links.redis_url, links.ns, kWaitForRedis);
  if (broker.ok()) return broker;
  const std::string message = error_message(broker.status());
  if (!message.starts_with(kThere)) return with_prefix(broker.status(), kHere);
  return Status(broker.status().code(), str_cat(kHere, message.substr(kThere.size())));
}

}  // namespace

std::string EpdBroker::url() const {
  return links.redis_url.empty() ? str_cat("local:", socket_of(folder)) : links.redis_url;
}

std::string EpdBroker::secret_path() const { return str_cat(folder.path(), "/", kEpdSecret); }

StatusOr<EpdBroker> start_epd_broker(const std::string& redis_url) {
  ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::create(runtime_folders(), kEpdBroker));
  ASSIGN_OR_RETURN(const std::string secret, random_secret());
  RETURN_IF_ERROR(folder.write(kEpdSecret, secret));
  ASSIGN_OR_RETURN(const std::string name, random_secret());
  EpdLinks links{folder.path(), redis_url, redis_url.empty() ? "default" : str_cat("epd-", name)};
  EpdBroker started{std::move(folder), std::move(links), nullptr, nullptr};
  if (redis_url.empty()) {
    const std::string socket = socket_of(started.folder);
    ASSIGN_OR_RETURN(started.server, LocalServer::start(socket, draw_id(), LocalServer::Options{}));
    ASSIGN_OR_RETURN(started.broker, LocalBroker::connect(socket));
  } else {
    ASSIGN_OR_RETURN(started.broker, connect_redis(started.links));
  }
  return started;
}

void write_child_line(std::string_view line) {
  const std::string whole = str_cat(line, "\n");
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace transept

#include "apps/epd_broker.h"

#include <random>

#include "apps/epd_child.h"

namespace transept {
namespace {

uint64_t draw_id() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string longest_name(const EpdPlan& plan) {
  std::string longest(kEpdBroker);
  for (const EpdInstance& instance : plan.instances) {
    if (instance.name.size() > longest.size()) longest = instance.name;
  }
  return longest;
}

}  // namespace

std::string EpdBroker::socket() const { return str_cat(folder.path(), "/", kEpdBroker); }
std::string EpdBroker::secret_path() const { return str_cat(folder.path(), "/", kEpdSecret); }

StatusOr<EpdBroker> start_epd_broker(const EpdPlan& plan) {
  ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::create(runtime_folders(), longest_name(plan)));
  ASSIGN_OR_RETURN(const std::string secret, random_secret());
  RETURN_IF_ERROR(folder.write(kEpdSecret, secret));
  EpdBroker broker{std::move(folder), nullptr};
  ASSIGN_OR_RETURN(broker.server, LocalServer::start(broker.socket(), draw_id(), LocalServer::Options{}));
  return broker;
}

}  // namespace transept

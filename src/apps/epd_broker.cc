#include "apps/epd_broker.h"

#include <cstdio>
#include <random>

#include "apps/epd_child.h"

namespace transept {
namespace {

uint64_t draw_id() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

std::string EpdBroker::socket() const { return str_cat(folder.path(), "/", kEpdBroker); }
std::string EpdBroker::secret_path() const { return str_cat(folder.path(), "/", kEpdSecret); }

StatusOr<EpdBroker> start_epd_broker() {
  ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::create(runtime_folders(), kEpdBroker));
  ASSIGN_OR_RETURN(const std::string secret, random_secret());
  RETURN_IF_ERROR(folder.write(kEpdSecret, secret));
  EpdBroker broker{std::move(folder), nullptr};
  ASSIGN_OR_RETURN(broker.server, LocalServer::start(broker.socket(), draw_id(), LocalServer::Options{}));
  return broker;
}

void write_child_line(std::string_view line) {
  const std::string whole = str_cat(line, "\n");
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace transept

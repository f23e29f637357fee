// What the instances of a fleet on one machine have in common: a private folder with the broker's socket, those of the
// instances, and a secret. With --epd-broker the broker is a Redis server, where the fleet has a namespace of its own.
// Owned by the launcher (epd_launcher.h, epd_session.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/epd_child.h"
#include "apps/private_folder.h"
#include "base/status.h"
#include "disagg/local_server.h"
#include "encoder_cache/broker.h"

namespace transept {

struct EpdBroker {
  PrivateFolder folder;
  EpdLinks links;
  std::unique_ptr<LocalServer> server;  // null: a Redis server
  std::shared_ptr<Broker> broker;       // connected

  std::string url() const;  // as --broker has it
  std::string secret_path() const;
};

// `redis_url`: of --epd-broker; "": a broker of its own. Errors: no folder, no random bytes, no broker (load_zmq()); of
// a Redis server those of connect_broker(), which name --epd-broker.
StatusOr<EpdBroker> start_epd_broker(const std::string& redis_url);

// Writes a line of a child to standard error in one call, so that lines stay whole.
void write_child_line(std::string_view line);

}  // namespace transept

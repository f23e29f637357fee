// What the instances of a fleet on one machine have in common: a private folder with the broker's socket, those of the
// instances, and a secret. Owned by the launcher (epd_launcher.h, epd_session.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/private_folder.h"
#include "base/status.h"
#include "disagg/local_server.h"

namespace transept {

struct EpdBroker {
  PrivateFolder folder;
  std::unique_ptr<LocalServer> server;

  std::string socket() const;  // the broker's path
  std::string secret_path() const;
};

// Errors: no folder, no random bytes, no broker (load_zmq()).
StatusOr<EpdBroker> start_epd_broker();

// Writes a line of a child to standard error in one call, so that lines stay whole.
void write_child_line(std::string_view line);

}  // namespace transept

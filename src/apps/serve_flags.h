// Flags of `transept serve`, and what comes of them.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "server/server.h"

namespace transept {

std::vector<FlagSpec> serve_flags();

struct ServeSettings {
  ServerOptions options;
  AccessLog::Options log;
  std::chrono::milliseconds shutdown_timeout{30000};
  int32_t replicas = 1;
};

// Checks --max-connections against the limit of open descriptors, of which the connections, those that are told that
// there are too many, and what is read from files have one each: the default becomes what fits. Errors: more was asked
// for than fits; nothing would (names both numbers, and the flag or the limit).
Status fit_connections(const Flags& flags, uint64_t max_descriptors, ServerOptions& options);

// REQUIRES: the first positional argument is the model, which is served by that name where --served-model-name gives
// none. Errors: a flag out of range, by name; --api-key-file that cannot be read, or holds no key.
StatusOr<ServeSettings> serve_settings(const Flags& flags);

}  // namespace transept

// Flags of `transept serve`, and the settings that they give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "server/server.h"
#include "startup/instance.h"

namespace transept {

std::vector<FlagSpec> serve_flags();

struct ServeSettings {
  ServerOptions options;
  AccessLog::Options log;
  std::chrono::milliseconds shutdown_timeout{30000};
  int32_t replicas = 1;
  std::string chat_template;                  // EngineConfig
  std::optional<Instance::Options> instance;  // of a fleet; without what set_instance_address() sets
};

// Checks --max-connections against the limit of open file descriptors. Each connection, each connection that is being
// refused, and each file being read needs one. The default is lowered to what fits. Errors: more was requested than
// fits; none would fit (names both numbers, and the flag or the limit).
Status fit_connections(const Flags& flags, uint64_t max_descriptors, ServerOptions& options);

// REQUIRES: the first positional argument is the model. Its folder's name is the served name unless --served-model-name
// is given. Errors: a flag out of range, by name; an --api-key-file that cannot be read, or holds no key; a
// --chat-template that is no file.
StatusOr<ServeSettings> serve_settings(const Flags& flags);

// What --served-model-name says. Errors: a name that is empty, or begins with '-': a flag whose value was left out
// takes the next flag for it.
StatusOr<std::vector<std::string>> served_model_names(const Flags& flags);
// Of --log-format, the level, and --log-prompts where there is such a flag. Errors: a format that is none.
StatusOr<AccessLog::Options> log_options(const Flags& flags);

}  // namespace transept

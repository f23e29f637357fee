// Flags of `transept serve` as an instance of a fleet, and the settings that they give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "startup/engine_config.h"
#include "startup/instance.h"

namespace transept {

std::vector<FlagSpec> instance_flags();

// nullopt: a server of its own. Without url and name if none is given. Errors: a flag that is wrong, by name; a
// --role without a --broker, or flags of an instance without a --role; a secret that cannot be read.
StatusOr<std::optional<Instance::Options>> instance_options(const Flags& flags);

// Sets what an instance's engine reads. Errors: a flag out of its range, by name.
Status set_instance_config(const Flags& flags, EngineConfig& config);
Status set_transfer_config(const Flags& flags, EngineConfig& config);  // the same, of transfer_flags() (epd_flags.h)

// Sets url, unless it was given, and the name if there is none: the role, the machine's name and the port. `address`:
// of the server. Errors: kInvalidArgument, instances of other machines cannot be told such an address.
Status set_instance_address(const std::string& address, Instance::Options& options);

}  // namespace transept

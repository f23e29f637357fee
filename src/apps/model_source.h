// The MODEL of a command, found as startup/find_model.h does, with the command's flags and a progress bar.
#pragma once

#include <string>

#include "apps/flags.h"
#include "hub/select_files.h"

namespace transept {

// The folder of the first positional argument. REQUIRES: there is one. Errors: those of find_model and hub_settings.
StatusOr<std::string> resolve_model(const Flags& flags, ModelParts parts);
// The folder of another model, by the name that a flag has; --revision is not its.
StatusOr<std::string> resolve_other_model(const Flags& flags, const std::string& name, ModelParts parts);

}  // namespace transept

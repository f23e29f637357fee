// Error texts for flags whose values come from environment variables. Pure functions: thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

// Returns the variable of a flag: "block-size" -> "TRANSEPT_BLOCK_SIZE".
std::string environment_name(std::string_view flag);

// Returns `status` with the variable in the place of the flag, if the message begins with a flag of `flags`
// ("block-size"): "--block-size 0: " becomes "TRANSEPT_BLOCK_SIZE=0: ", which is what the user has to change. `flags`
// are those whose values came from the environment. Keeps the code and the param; returns any other status unchanged.
Status blame_environment(const Status& status, const std::set<std::string>& flags);

}  // namespace transept

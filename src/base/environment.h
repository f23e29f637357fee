// Flags and the environment variables that stand for them, in error texts. Pure functions: thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

// "block-size" -> "TRANSEPT_BLOCK_SIZE".
std::string environment_name(std::string_view flag);

// Errors about a flag begin with "--block-size 0: ". Where its value came from the environment (`flags` holds
// "block-size"), the error begins with "TRANSEPT_BLOCK_SIZE=0: " instead, which is what its reader has to mend.
Status blame_environment(const Status& status, const std::set<std::string>& flags);

}  // namespace transept

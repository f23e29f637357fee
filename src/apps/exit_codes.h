// What the binary ends with (docs/api.md): 0 ok, 1 some inputs failed, 2 usage, start-up, or no memory to go on with;
// of an interrupt the shell's.
#pragma once

#include <string_view>

#include "base/status.h"

namespace transept {

inline constexpr int kExitOk = 0;
inline constexpr int kExitSomeFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// Prints "transept VERB: message" and a pointer to the help; gives kExitUsage.
int usage_error(std::string_view verb, const Status& status);

}  // namespace transept

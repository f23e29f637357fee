// The exit codes of the binary (docs/api.md): 0 ok; 1 some inputs failed; 2 usage, start-up, or out of memory; on an
// interrupt the shell's code.
#pragma once

#include <string_view>

#include "base/status.h"

namespace transept {

inline constexpr int kExitOk = 0;
inline constexpr int kExitSomeFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// Prints "transept VERB: message" and a pointer to the help. Returns kExitUsage.
int usage_error(std::string_view verb, const Status& status);

}  // namespace transept

// Log lines of a program that Transept is a part of: to its callback, or warnings and errors alone to standard error.
// Process-wide, as base/log.h is. Thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "capi/transept.h"

namespace transept {

// Leaves informative lines out, unless the caller has set a level before.
void use_quiet_log();

// Errors: kInvalidArgument (the level), kFailedPrecondition (from inside the callback).
Status set_log_callback(int32_t level, transept_log_fn log, void* data);

}  // namespace transept

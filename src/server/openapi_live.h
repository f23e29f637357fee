// The paths of live audio in /openapi.json. A pure function: thread-safe.
#pragma once

#include "base/json.h"

namespace transept {

// Returns the members of "paths".
Json live_paths(bool has_keys);

}  // namespace transept

// Flags of `transept serve MODEL --epd 1E1D`, and what they ask for. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/epd_shape.h"
#include "apps/flags.h"
#include "base/status.h"

namespace transept {

struct EpdPlan {
  EpdShape shape;
  std::vector<EpdInstance> instances;
  std::string redis_url;  // of --epd-broker; "": the fleet has a broker of its own
};

std::vector<FlagSpec> epd_flags();
// Those of them that say how instances transfer. Instances with a --role of their own have them, too.
std::vector<FlagSpec> transfer_flags();

// Without --epd nullopt. `available`: the processors of this process, ascending. Errors, which name the flag or its
// variable: kInvalidArgument, a value, or a flag that does not go with --epd.
StatusOr<std::optional<EpdPlan>> epd_plan(const Flags& flags, const std::vector<int>& available);

}  // namespace transept

// `transept bench live URL`: sessions of /v1/realtime that send recordings in real time, and how far behind the text is
// (docs/live.md).
#pragma once

#include <vector>

#include "apps/flags.h"

namespace transept {

std::vector<FlagSpec> bench_live_flags();
int run_bench_live(const Flags& flags);  // an exit code

}  // namespace transept

// `transept bench serve URL`: load against an OpenAI-compatible server, and what came of it (docs/bench_serve.md).
#pragma once

#include "apps/flags.h"

namespace transept {

int run_bench_serve(const Flags& flags);  // an exit code

}  // namespace transept

// `transept bench serve URL`: puts load on an OpenAI-compatible server and reports the results (docs/bench_serve.md).
#pragma once

#include "apps/flags.h"

namespace transept {

int run_bench_serve(const Flags& flags);  // an exit code

}  // namespace transept

// Runs the job of a verb, from its flags to its exit code: loads the model, runs the engine on its thread, writes the
// results and --stats-json, and reports what an interrupt left undone.
#pragma once

#include <string_view>

#include "apps/flags.h"
#include "apps/job.h"
#include "apps/ordered_run.h"
#include "startup/load_engine.h"

namespace transept {

// Reads --output, --stats-json and the engine's flags. `options`: of the run. Returns an exit code.
int run_job(std::string_view verb, const Flags& flags, OrderedRun::Options options, Job& job);

// --request-timeout. Errors: out of range.
StatusOr<std::optional<Duration>> request_timeout(const Flags& flags);

}  // namespace transept

// What a rank asks of a plan that came from outside, before it executes it.
#pragma once

#include "base/status.h"
#include "rank/executor.h"
#include "rank/step_plan.h"

namespace transept {

// What a rank of these limits may rely on before it executes a plan that came from outside: indices lie within their
// lists, blocks within their pools, ids within their vocabularies, tables hold the tokens that are read and written,
// media lie within the bulk, the step is no larger than its buffers, and the rank has the part of the model that it
// wants (check_part.h). Errors name the field.
Status check_plan(const StepPlan& plan, const ExecutorInfo& info);

}  // namespace transept

// Whether a rank has the part of the model that a plan wants. Pure: thread-safe.
#pragma once

#include "base/status.h"
#include "models/model_spec.h"
#include "rank/step_plan.h"

namespace transept {

// Whether the part of a model can execute the plan: a decoder's part encodes nothing, and an encoder's part does
// nothing else, takes no rows, and has no tables. Every runner asks before it executes. Errors: kFailedPrecondition,
// naming the field.
Status check_part(const StepPlan& plan, ModelPart part);

}  // namespace transept

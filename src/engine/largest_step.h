// The largest steps that the limits allow, as plans: what start-up walks to size the step arena.
#pragma once

#include <vector>

#include "engine/input_batch.h"
#include "engine/step_plan.h"

namespace transept {

// Several, since no one step is the largest in every room: all rows in few long prompts with all of their logits
// wanted; as many sequences as may run, each at its longest; and both with a full load of encoder inputs.
std::vector<StepPlan> largest_steps(const InputBatch::Limits& limits);

}  // namespace transept

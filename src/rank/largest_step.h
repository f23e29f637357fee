// The largest steps that the limits allow, as plans. Start-up dry-runs them to size the step arena. Pure: thread-safe.
#pragma once

#include <vector>

#include "rank/input_batch.h"
#include "rank/step_plan.h"

namespace transept {

// Returns several plans, since no single step is the largest everywhere: few long prompts that use all rows and want
// all logits; as many decoding sequences as may run, each at its longest; as many short prompts, which use all rows
// between them. Both plans of prompts have a full load of items of these consumers.
std::vector<StepPlan> largest_steps(const InputBatch::Limits& limits, Consumers consumers);

}  // namespace transept

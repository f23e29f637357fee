// The largest steps that the limits allow, as plans. Start-up dry-runs them to size the step arena. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/model_spec.h"
#include "rank/input_batch.h"
#include "rank/step_plan.h"

namespace transept {

// Returns several plans, since no single step is the largest everywhere: few long prompts that use all rows and want
// all logits; as many decoding sequences as may run, each at its longest; as many short prompts, which use all rows
// between them. Both plans of prompts have a full load of items of these consumers and this source.
std::vector<StepPlan> largest_steps(const InputBatch::Limits& limits, Consumers consumers,
                                    RowSource source = RowSource::kEncode);

// The same of a rank that has the encoder alone: plans of encodes, of at most max_num_seqs items. As few long items as
// use all rows; and as many short ones as there may be.
std::vector<StepPlan> largest_encodes(const InputBatch::Limits& limits, Consumers consumers);

// Errors: kResourceExhausted: this machine has less memory than `bytes`, which a step of `tokens` wants; `flags` are
// the ones to lower, as the message says them.
Status check_step_memory(uint64_t bytes, std::string_view tokens, std::string_view flags);

// The kinds of items that one batch may be of, by what the decoder does with their rows: each may have an encoder of
// its own. Never empty.
std::vector<Consumers> kinds_of_items(const ModelSpec& spec);

}  // namespace transept

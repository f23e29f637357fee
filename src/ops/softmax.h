// Reductions of one row of logits, vectorised, on the calling thread. Functions without state: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/context.h"

namespace transept {

// Returns log(sum(exp(x))); entries of -inf add nothing. All -inf, an empty row, or a dry run: -inf. NaN in x gives
// NaN. The order of reduction depends on x.size() and the level alone.
float log_sum_exp(const Context& context, std::span<const float> x);

// Returns the index of the largest entry, the lowest on ties; NaN is never the largest. -1 if there is none (empty, all
// NaN, or a dry run).
int64_t arg_max(const Context& context, std::span<const float> x);

}  // namespace transept

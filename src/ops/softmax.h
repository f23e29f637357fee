#pragma once

#include <cstdint>
#include <span>

#include "tensor/context.h"

namespace transept {

// log(sum(exp(x))) of one row, vectorised; -inf entries count nothing. All -inf: -inf. Order of reduction depends on
// x.size() and the level alone.
float log_sum_exp(const Context& context, std::span<const float> x);

// Index of the largest entry, the lowest on ties; NaN never wins. -1 if there is none (empty, or all NaN).
int64_t arg_max(const Context& context, std::span<const float> x);

}  // namespace transept

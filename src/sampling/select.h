// From hidden rows to tokens and log-probabilities, batched over everything that a step samples or scores. Everything
// behind `decode()` lives here: fused arg-max, a vocabulary split over ranks, several rows a sequence, shortlists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/lm_head.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

// hidden: [num_rows, dim] float32. REQUIRES: rows ascend in hidden_row. top-k, top-p and min-p look at the distribution
// that log-probabilities are reported of; temperature then reshapes what they leave (docs/decisions/).
void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
            SampleOutput& output);

// Step memory that select wants at most: walks it with a measuring arena. `num_rows` as many as a step may bring.
void select_dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows);

}  // namespace transept

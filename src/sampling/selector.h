// The last part of a step, by device: from hidden rows to tokens and log-probabilities. The processor's is
// sampling/select.h. Immutable, so thread-safe; owned by a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "layers/lm_head.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

class Selector {
 public:
  virtual ~Selector() = default;

  // Fills `output` with one RowSample per row, in their order. hidden: [num_rows, dim] float32, the device's; what
  // `output` holds is the host's. REQUIRES: rows ascend in hidden_row.
  virtual void select(Context& context, const LmHead& lm_head, const TensorView& hidden,
                      std::span<const RowRequest> rows, SampleOutput& output) const = 0;
  // Allocates the step memory that select() needs for `num_rows` hidden rows.
  virtual void dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) const = 0;
};

std::unique_ptr<const Selector> make_cpu_selector();

}  // namespace transept

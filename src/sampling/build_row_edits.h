// The edits of a row (row_edits.h), worked out from the request's parameters and its tokens. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/sampling_params.h"
#include "sampling/row_edits.h"

namespace transept {

// The tokens that a row's edits depend on.
struct RowHistory {
  std::span<const int32_t> encoder_prompt;
  std::span<const int32_t> prompt;     // the decoder's
  std::span<const int32_t> generated;  // so far
};

// Fills `edits` (cleared first; vectors keep their memory) for the next token after `history`.
void build_row_edits(const SamplingParams& params, const RowHistory& history, RowEdits& edits);

}  // namespace transept

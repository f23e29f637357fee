// Computes the edits of a row (row_edits.h) from the request's parameters and its tokens. Pure: thread-safe. Source:
// transformers, generation/logits_process.py.
#pragma once

#include <cstdint>
#include <span>

#include "core/sampling_params.h"
#include "sampling/row_edits.h"

namespace transept {

// The tokens that a row's edits depend on.
struct RowHistory {
  std::span<const int32_t> encoder_prompt;  // media: empty
  std::span<const int32_t> prompt;          // of the decoder
  std::span<const int32_t> generated;
  // Ids that prompts have and outputs have not are from here on: nothing can be edited for them. 0: there are none.
  int32_t vocab_size = 0;
};

// Fills `edits` for the token after `history`; clears it first, and reuses the memory of its vectors.
void build_row_edits(const SamplingParams& params, const RowHistory& history, RowEdits& edits);

}  // namespace transept

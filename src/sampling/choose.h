// Choosing one token of one row of scores: the part of `select` that knows no model.
#pragma once

#include <cstdint>
#include <span>

#include "core/request_output.h"
#include "sampling/row_edits.h"
#include "sampling/select.h"
#include "tensor/context.h"

namespace transept {

struct Candidate {
  float score;
  int32_t token_id;
};

// Applies the edits in their order; forced tokens included. The scores are logits or log-probabilities.
void apply_edits(const Context& context, const RowEdits& edits, std::span<float> scores);

// Those of ids [first_id, first_id + scores.size()), all but the weighing of timestamps, which looks at the whole row.
void apply_edits(const RowEdits& edits, int32_t first_id, std::span<float> scores);

// A token of the edited scores. `scratch`: [scores.size()], used when sampling. -1 if no score is a number above -inf.
int32_t choose_token(const Context& context, const RowRequest& request, std::span<const float> scores,
                     std::span<Candidate> scratch);

// 1 + how many tokens come before `token_id` (higher score, or the same score and a lower id).
int32_t rank_of(std::span<const float> scores, int32_t token_id);

// The best `k` of the row, best first, -inf left out; returns how many were written. REQUIRES: out.size() >= k.
int32_t top_entries(const Context& context, std::span<const float> scores, float log_normalizer, int32_t k,
                    std::span<TokenLogprob> out);

}  // namespace transept

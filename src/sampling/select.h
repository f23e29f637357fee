// From hidden rows to tokens and log-probabilities, for all rows that a step samples or scores: everything that follows
// Model::decode(). Tokens that need no whole row of scores are found while the scores are computed (greedy_row.h,
// candidate_row.h). The processor's own: its threads share the work; one caller per context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "layers/lm_head.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

// Fills `output` with one RowSample per row, in their order. hidden: [num_rows, dim] float32. top-k, top-p and min-p
// filter the distribution that log-probabilities are reported of; temperature then reshapes the rest
// (docs/decisions/0005-filters-before-temperature.md). REQUIRES: rows ascend in hidden_row.
//
// Over ranks (context.ranks) each scores and edits its own pieces of the vocabulary, and the first chooses: its output
// has the bits of one rank; that of the others, and of all after a failed exchange, is undefined but has the same size.
// REQUIRES, there: the same call on all ranks; no subset has copies.
void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
            SampleOutput& output);

// Writes the scores of hidden rows [first, last) to `out` [last - first, vocab], the host's.
using ScoreRows = FunctionRef<void(int64_t first, int64_t last, const TensorView& out)>;

// select() of `num_hidden` rows whose scores another device computes: `score` is called for at most 32 of them at a
// time. Of equal scores the output has the same bits. REQUIRES: a context of the processor, without ranks; no subset
// has copies.
void select_scored(Context& context, int64_t vocab, int64_t num_hidden, ScoreRows score,
                   std::span<const RowRequest> rows, SampleOutput& output);

// Allocates the step memory that select() needs for `num_rows` hidden rows, to size the arena (tensor/arena.h).
void select_dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows);

}  // namespace transept

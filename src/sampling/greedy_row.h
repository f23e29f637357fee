// Finds the best token of a row piece by piece while the scores are computed, for a request that needs nothing else.
// The thread that computed a piece edits and reduces it; no pass over the whole row follows.
//
// Pieces are those of LmHead::logits_by_ids, so the result depends neither on the threads nor on other rows. Pure but
// for the scores that are edited: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

// The scores of some ids, reduced.
struct ScorePiece {
  float max;         // -inf: no score is above it
  float sum;         // of exp(score - max); 0 where no sum is needed
  int32_t best;      // the first id with the score max, if max is above -inf
  bool has_strange;  // a score is NaN or +inf
};

// The ids of a piece below and from the first timestamp on (`timestamps` weighed; else all are `text`).
struct GreedyPiece {
  ScorePiece text, timestamps;
};

// Whether the edits are few enough for each piece to go through all of them, and do not renormalise the row.
bool are_few(const RowEdits& edits);

// Reduces the scores of ids [first_id, first_id + scores.size()).
ScorePiece sum_up_piece(const Context& context, int32_t first_id, std::span<const float> scores);

// Returns the log-sum-exp of the `text` of all pieces, added in their order; NaN if one has_strange.
float log_sum_of(std::span<const GreedyPiece> pieces);

// Whether the request's token can be found by pieces: greedy, no candidates and no listed log-probabilities, and edits
// that are few. Weighing timestamps is supported.
bool is_found_by_pieces(const RowRequest& request);

// Edits and reduces the scores of ids [first_id, first_id + scores.size()). Omits the sums if the request does not need
// them.
GreedyPiece look_at_piece(const Context& context, const RowRequest& request, int32_t first_id, std::span<float> scores);

// Writes the token and its log-probability (RowRequest::wants_logprob) to `sample`. `pieces`: in order of ids. Scores
// that are no numbers: kNotNumbers; all tokens forbidden: kNothingLeft.
void choose_by_pieces(const RowRequest& request, std::span<const GreedyPiece> pieces, RowSample& sample);

}  // namespace transept

// The best token of a row that wants nothing else, found piece by piece while the scores are computed: each piece is
// edited and looked at by the thread that has just computed it, and no pass over the whole row follows.
//
// Pieces are those of LmHead::logits_by_ids, so what a row gives depends neither on threads nor on other rows.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

// What is known of the scores of some ids.
struct ScorePiece {
  float max;         // -inf: none is above it
  float sum;         // of exp(score - max)
  int32_t best;      // the first id that has it, if max is above -inf
  bool has_strange;  // NaN or +inf among them
};

// Ids of a piece on either side of where timestamps begin (without timestamps: all on the first).
struct GreedyPiece {
  ScorePiece text, timestamps;
};

// Edits that every piece may go through, and that each do something to single scores (the weighing of timestamps
// apart).
bool are_few(const RowEdits& edits);

// What the scores of ids from first_id on come to; of none: nothing.
ScorePiece sum_up_piece(const Context& context, int32_t first_id, std::span<const float> scores);

// The logarithm of the sum of exponentials of all pieces' text, in their order; NaN where one has something strange.
float log_sum_of(std::span<const GreedyPiece> pieces);

// True if the request's token can be found so: greedy, no lists, edits that are few and do not look at the whole row
// (the weighing of timestamps is known here).
bool is_found_by_pieces(const RowRequest& request);

// Edits the scores of ids [first_id, first_id + scores.size()) and sums them up; where no sum is needed it is left
// out.
GreedyPiece look_at_piece(const Context& context, const RowRequest& request, int32_t first_id, std::span<float> scores);

// Token and log-probability, from the pieces in their order.
void choose_by_pieces(const RowRequest& request, std::span<const GreedyPiece> pieces, RowSample& sample);

}  // namespace transept

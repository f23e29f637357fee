// The best tokens of a beam's row, listed piece by piece while the scores are computed, as greedy_row.h finds the best:
// the scores of a whole row are never written, and never passed over again.
//
// A list has one order (score, then id), so what it holds in the end depends neither on threads nor on other rows.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/greedy_row.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

inline constexpr int32_t kMostListed = 32;

// The best of the ids that one thread has looked at, best first, with scores for log-probabilities.
struct alignas(64) CandidateList {
  int32_t count = 0;
  TokenLogprob entries[kMostListed];
};

// True if the request's candidates can be listed so: not too many, and edits that are few, do not look at the whole row
// and do the same to a score as to its log-probability.
bool is_listed_by_pieces(const RowRequest& request);

// Sums up the scores of ids [first_id, first_id + scores.size()), edits them and puts the best into the thread's list.
GreedyPiece list_piece(const Context& context, const RowRequest& request, int32_t first_id, std::span<float> scores,
                       CandidateList& list);

// Candidates to `top` [num_candidates, or what the vocabulary has], from the pieces in their order and the threads'
// lists: lists[i * step] is thread i's.
void choose_candidates(std::span<const GreedyPiece> pieces, std::span<const CandidateList> lists, size_t step,
                       RowSample& sample, std::span<TokenLogprob> top);

}  // namespace transept

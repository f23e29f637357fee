// The best tokens of a beam's row, listed piece by piece while the scores are computed (as greedy_row.h does for the
// best one): the scores of a whole row are neither stored nor read again.
//
// A list is ordered by score, then id, so its final content depends neither on the threads nor on other rows. Each
// thread fills lists of its own; the functions are thread-safe otherwise.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/greedy_row.h"
#include "sampling/row_request.h"
#include "tensor/context.h"

namespace transept {

inline constexpr int32_t kMostListed = 32;

// The best of the ids that one thread has processed, best first. `logprob` of an entry holds its score.
struct alignas(64) CandidateList {
  int32_t count = 0;
  TokenLogprob entries[kMostListed];
};

// Whether the request's candidates can be listed by pieces: at most kMostListed, and edits that are few (are_few), do
// not depend on the whole row, and change a score as they change its log-probability.
bool is_listed_by_pieces(const RowRequest& request);

// Sums up the scores of ids [first_id, first_id + scores.size()), then edits them and inserts the best into the
// thread's list. Returns the sum of the raw scores.
GreedyPiece list_piece(const Context& context, const RowRequest& request, int32_t first_id, std::span<float> scores,
                       CandidateList& list);

// Replaces `merged` with the best of several lists of one row: at most `most`. lists[i * step]: the list of thread i.
void merge_lists(std::span<const CandidateList> lists, size_t step, int32_t most, CandidateList& merged);

// Writes the candidates to `top`, [num_top_entries()], and the best of them to `sample`; sample.num_top of them are
// filled. `pieces`: in order of ids. lists[i * step]: the list of thread i. Scores that are no numbers: kNotNumbers;
// all tokens forbidden: kNothingLeft.
void choose_candidates(std::span<const GreedyPiece> pieces, std::span<const CandidateList> lists, size_t step,
                       RowSample& sample, std::span<TokenLogprob> top);

}  // namespace transept

#include "sampling/candidate_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/select_kernels.h"
#include "sampling/choose.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool before(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob > b.logprob || (a.logprob == b.logprob && a.token_id < b.token_id);
}

// Puts `entry` into the first `most` of the list, if it belongs there.
void insert(const TokenLogprob& entry, int32_t most, CandidateList& list) {
  if (list.count == most) {
    if (!before(entry, list.entries[most - 1])) return;
    --list.count;
  }
  int32_t place = list.count++;
  for (; place > 0 && before(entry, list.entries[place - 1]); --place) list.entries[place] = list.entries[place - 1];
  list.entries[place] = entry;
}

}  // namespace

bool is_listed_by_pieces(const RowRequest& request) {
  if (request.target_token >= 0 || request.num_candidates <= 0 || request.num_candidates > kMostListed) return false;
  const RowEdits* edits = request.edits;
  if (edits == nullptr) return true;
  return edits->forced_token < 0 && edits->repetition_penalty == 1 && edits->timestamp_begin < 0 && are_few(*edits);
}

GreedyPiece list_piece(const Context& context, const RowRequest& request, int32_t first_id, std::span<float> scores,
                       CandidateList& list) {
  GreedyPiece piece{sum_up_piece(context, first_id, scores), sum_up_piece(context, 0, {})};
  if (request.edits != nullptr) apply_edits(*request.edits, first_id, scores);
  const int32_t most = request.num_candidates;
  // Pieces come in any order: a score that is as good as the last of the list may have the lower id.
  const float least = list.count == most ? std::nextafter(list.entries[most - 1].logprob, kNever) : kNever;
  int32_t places[kPieceColumns];
  const int32_t num_above =
      op_kernels(cpu_of(context).isa()).find_above(scores.data(), static_cast<int32_t>(scores.size()), least, places);
  for (int32_t i = 0; i < num_above; ++i) {
    insert({first_id + places[i], scores[static_cast<size_t>(places[i])], 0}, most, list);
  }
  return piece;
}

void merge_lists(std::span<const CandidateList> lists, size_t step, int32_t most, CandidateList& merged) {
  merged.count = 0;
  for (size_t i = 0; i < lists.size(); i += step) {
    for (int32_t j = 0; j < lists[i].count; ++j) insert(lists[i].entries[j], most, merged);
  }
}

void choose_candidates(std::span<const GreedyPiece> pieces, std::span<const CandidateList> lists, size_t step,
                       RowSample& sample, std::span<TokenLogprob> top) {
  const int64_t top_begin = sample.top_begin;
  sample = {};
  sample.top_begin = top_begin;
  const float normalizer = log_sum_of(pieces);
  if (!std::isfinite(normalizer)) return;
  CandidateList best;
  merge_lists(lists, step, static_cast<int32_t>(top.size()), best);
  const std::span<TokenLogprob> found(best.entries, static_cast<size_t>(best.count));
  for (TokenLogprob& entry : found) entry.logprob -= normalizer;
  std::sort(found.begin(), found.end(), before);  // scores that differed may be one log-probability
  for (size_t i = 0; i < found.size(); ++i) {
    top[i] = found[i];
    top[i].rank = static_cast<int32_t>(i) + 1;
  }
  sample.num_top = best.count;
  sample.token_id = kNothingLeft;
  if (best.count == 0) return;
  sample.token_id = top[0].token_id;
  sample.logprob = top[0].logprob;
  sample.rank = 1;
}

}  // namespace transept

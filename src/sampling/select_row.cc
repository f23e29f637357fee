#include "sampling/select_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/softmax.h"

namespace transept {
namespace {

void subtract(float value, std::span<float> scores) {
  for (float& score : scores) score -= value;
}

void edit(const Context& context, const RowRequest& request, std::span<float> scores) {
  apply_edits(context, *request.edits, IdPlaces::of(request, scores.size()), scores);
  if (!request.edits->renormalize) return;
  const float normalizer = log_sum_exp(context, scores);
  if (std::isfinite(normalizer)) subtract(normalizer, scores);
}

// Beam search edits log-probabilities and does not make them sum to one again (unless the model asks for it).
void list_candidates(const Context& context, const RowRequest& request, std::span<float> scores, RowSample& sample,
                     std::span<TokenLogprob> top) {
  const float normalizer = log_sum_exp(context, scores);
  if (!std::isfinite(normalizer)) return;
  subtract(normalizer, scores);
  if (request.edits != nullptr) edit(context, request, scores);
  sample.num_top = top_entries(context, scores, 0, static_cast<int32_t>(top.size()), top);
  sample.token_id = kNothingLeft;
  if (sample.num_top == 0) return;
  sample.token_id = top[0].token_id;
  sample.logprob = top[0].logprob;
  sample.rank = 1;
}

// The raw distribution, over all ids or the first target_vocab.
void score_target(const Context& context, const RowRequest& request, std::span<const float> scores, RowSample& sample,
                  std::span<TokenLogprob> top) {
  const IdPlaces places = IdPlaces::of(request, scores.size());
  if (request.target_vocab > 0) scores = scores.first(places.lower(request.target_vocab));
  const float normalizer = log_sum_exp(context, scores);
  if (std::isnan(normalizer)) return;
  const size_t place = places.find(request.target_token);
  sample.token_id = request.target_token;
  const bool is_there = place < scores.size();
  sample.logprob = is_there ? scores[place] - normalizer : -std::numeric_limits<float>::infinity();
  if (request.num_logprobs < 0) return;
  if (is_there) sample.rank = rank_of(scores, static_cast<int32_t>(place));
  sample.num_top = top_entries(context, scores, normalizer, request.num_logprobs, top);
}

void choose(const Context& context, const RowRequest& request, std::span<float> scores, std::span<Candidate> scratch,
            RowSample& sample, std::span<TokenLogprob> top) {
  if (request.edits != nullptr) edit(context, request, scores);
  const float normalizer = log_sum_exp(context, scores);
  sample.token_id = choose_token(context, request, scores, scratch);
  if (sample.token_id < 0 || std::isnan(normalizer)) {
    sample.token_id = std::isnan(normalizer) ? kNotNumbers : kNothingLeft;
    return;
  }
  sample.logprob = scores[static_cast<size_t>(sample.token_id)] - normalizer;
  if (request.num_logprobs < 0) return;
  sample.rank = rank_of(scores, sample.token_id);
  sample.num_top = top_entries(context, scores, normalizer, request.num_logprobs, top);
}

// A forced token is the only one, wherever it stands.
bool is_forced_from_outside(const RowRequest& request) {
  if (request.subset == nullptr || request.target_token >= 0 || request.edits == nullptr) return false;
  const int32_t forced = request.edits->forced_token;
  const IdPlaces places(request.subset->ids);
  return forced >= 0 && places.find(forced) == places.size();
}

void give_forced(const RowRequest& request, RowSample& sample, std::span<TokenLogprob> top) {
  sample.token_id = request.edits->forced_token;
  if (request.num_candidates > 0 || request.num_logprobs >= 0) sample.rank = 1;
  if (top.empty()) return;
  top[0] = {sample.token_id, 0, 1};
  sample.num_top = 1;
}

// Places become ids.
void name_ids(const RowRequest& request, RowSample& sample, std::span<TokenLogprob> top) {
  const std::span<const int32_t> ids = request.subset->ids;
  if (request.target_token < 0 && sample.token_id >= 0) sample.token_id = ids[static_cast<size_t>(sample.token_id)];
  for (TokenLogprob& entry : top.first(static_cast<size_t>(sample.num_top))) {
    entry.token_id = ids[static_cast<size_t>(entry.token_id)];
  }
}

}  // namespace

void select_row(const Context& context, const RowRequest& request, std::span<float> scores,
                std::span<Candidate> scratch, RowSample& sample, std::span<TokenLogprob> top) {
  const int64_t top_begin = sample.top_begin;
  sample = {};
  sample.top_begin = top_begin;
  if (is_forced_from_outside(request)) return give_forced(request, sample, top);
  if (request.target_token >= 0) {
    score_target(context, request, scores, sample, top);
  } else if (request.num_candidates > 0) {
    list_candidates(context, request, scores, sample, top);
  } else {
    choose(context, request, scores, scratch, sample, top);
    if (!request.wants_logprob) sample.logprob = 0;
  }
  if (request.subset != nullptr) name_ids(request, sample, top);
}

}  // namespace transept

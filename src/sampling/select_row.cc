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

void edit(const Context& context, const RowEdits& edits, std::span<float> scores) {
  apply_edits(context, edits, scores);
  if (!edits.renormalize) return;
  const float normalizer = log_sum_exp(context, scores);
  if (std::isfinite(normalizer)) subtract(normalizer, scores);
}

// Beam search edits log-probabilities and does not make them sum to one again (unless the model asks for it).
void list_candidates(const Context& context, const RowRequest& request, std::span<float> scores, RowSample& sample,
                     std::span<TokenLogprob> top) {
  const float normalizer = log_sum_exp(context, scores);
  if (!std::isfinite(normalizer)) return;
  subtract(normalizer, scores);
  if (request.edits != nullptr) edit(context, *request.edits, scores);
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
  if (request.target_vocab > 0)
    scores = scores.first(std::min(scores.size(), static_cast<size_t>(request.target_vocab)));
  const float normalizer = log_sum_exp(context, scores);
  if (std::isnan(normalizer)) return;
  sample.token_id = request.target_token;
  const bool is_there = static_cast<size_t>(request.target_token) < scores.size();
  sample.logprob = is_there ? scores[static_cast<size_t>(request.target_token)] - normalizer
                            : -std::numeric_limits<float>::infinity();
  if (request.num_logprobs < 0) return;
  if (is_there) sample.rank = rank_of(scores, request.target_token);
  sample.num_top = top_entries(context, scores, normalizer, request.num_logprobs, top);
}

}  // namespace

void select_row(const Context& context, const RowRequest& request, std::span<float> scores,
                std::span<Candidate> scratch, RowSample& sample, std::span<TokenLogprob> top) {
  const int64_t top_begin = sample.top_begin;
  sample = {};
  sample.top_begin = top_begin;
  if (request.target_token >= 0) {
    score_target(context, request, scores, sample, top);
    return;
  }
  if (request.num_candidates > 0) {
    list_candidates(context, request, scores, sample, top);
    return;
  }
  if (request.edits != nullptr) edit(context, *request.edits, scores);
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

}  // namespace transept

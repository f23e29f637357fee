// The part of `select` that handles the scores of one request: edits, choice, log-probabilities. Pure but for the
// scores, which it may change: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/choose.h"
#include "sampling/row_request.h"

namespace transept {

// Returns the entries of SampleOutput::top to reserve for the request.
constexpr int32_t num_top_entries(const RowRequest& request, int64_t vocab_size) {
  const int32_t wanted = request.num_candidates > 0 ? request.num_candidates : request.num_logprobs;
  const int64_t least = wanted < 0 ? 0 : wanted;
  return static_cast<int32_t>(least < vocab_size ? least : vocab_size);
}

// Fills `sample` but for top_begin, and the first sample.num_top entries of `top`, [num_top_entries()]. scores: raw
// logits of all ids, or, with a subset, of its ids in their order. scratch: [scores.size()] at least, for sampling.
void select_row(const Context& context, const RowRequest& request, std::span<float> scores,
                std::span<Candidate> scratch, RowSample& sample, std::span<TokenLogprob> top);

}  // namespace transept

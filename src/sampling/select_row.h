// What `select` does with the scores of one request: edits, choice, log-probabilities. Pure but for the scores, which
// it may change.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/choose.h"
#include "sampling/row_request.h"

namespace transept {

// Entries of SampleOutput::top that the request wants.
constexpr int32_t num_top_entries(const RowRequest& request, int64_t vocab_size) {
  const int32_t wanted = request.num_candidates > 0 ? request.num_candidates : request.num_logprobs;
  const int64_t least = wanted < 0 ? 0 : wanted;
  return static_cast<int32_t>(least < vocab_size ? least : vocab_size);
}

// scores: [vocab] raw logits; of a request with a subset those of its ids, in their order. scratch: as many, for
// sampling. top: [num_top_entries()]; sample.num_top of them are
// filled, and sample.top_begin is left alone.
void select_row(const Context& context, const RowRequest& request, std::span<float> scores,
                std::span<Candidate> scratch, RowSample& sample, std::span<TokenLogprob> top);

}  // namespace transept

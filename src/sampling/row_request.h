// What is asked of one row of scores, and what comes of it. Values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/request_output.h"
#include "ops/gemm.h"
#include "sampling/row_edits.h"

namespace transept {

// The ids that a request's tokens may be of (a shortlist's), ascending. All others are as if their scores were -inf
// before any edit: they cannot be chosen, and have no part in a distribution.
struct VocabularySubset {
  std::span<const int32_t> ids;
  std::span<const GemmPart> parts;  // their outputs (layers/chosen_outputs.h); none: picked out of all ids' scores
};

// One token to choose or to score. Several requests may look at one hidden row (n samples after one prompt).
struct RowRequest {
  int32_t hidden_row = 0;
  int32_t target_token = -1;        // >= 0: no choice, the log-probability of this token in the raw distribution
  int32_t target_vocab = 0;         // > 0: a target's distribution is over the ids below; another target has none
  const RowEdits* edits = nullptr;  // null: none. Not looked at when scoring
  const VocabularySubset* subset = nullptr;  // null: all ids. It holds for targets, too
  float temperature = 0;                     // 0: the best token, ties to the lower id
  int32_t top_k = 0;                         // 0: all
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;  // with seq_index and position the key of the one random number
  uint32_t seq_index = 0;
  uint32_t position = 0;
  bool wants_logprob = true;  // false: RowSample::logprob of the chosen token is 0. Not looked at for targets and beams
  int32_t num_logprobs = -1;  // >= 0: so many of the best are listed, and the token's rank is worked out
  // > 0: a beam's row. So many of the best tokens are listed (RowSample names the first), with log-probabilities that
  // the edits changed and that were not normalised again. Temperature, filters and num_logprobs are not looked at.
  int32_t num_candidates = 0;
};

// Instead of a token id:
inline constexpr int32_t kNotNumbers = -1;   // the scores were not numbers: the checkpoint is broken
inline constexpr int32_t kNothingLeft = -2;  // every token is forbidden

struct RowSample {
  int32_t token_id = kNotNumbers;
  float logprob = 0;    // natural, of the edited distribution before temperature and filters (target: the raw one)
  int32_t rank = 0;     // 1: the best; 0 when num_logprobs < 0
  int32_t num_top = 0;  // its entries in SampleOutput::top
  int64_t top_begin = 0;
  // The encoder position that the row attends to most, where alignments are asked for (the model runner's doing).
  int32_t source_index = -1;
};

// Reused from step to step: vectors keep their memory.
struct SampleOutput {
  std::vector<RowSample> rows;    // one for each RowRequest
  std::vector<TokenLogprob> top;  // best first; tokens of probability zero are left out
};

}  // namespace transept

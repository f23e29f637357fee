// A request for one token from one row of scores, and its result. Values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/request_output.h"
#include "layers/chosen_outputs.h"
#include "sampling/row_edits.h"

namespace transept {

// The ids that a request may choose (a shortlist), ascending. All others count as if their scores were -inf before any
// edit: they have no part in a distribution, and are chosen only if forced.
struct VocabularySubset {
  std::span<const int32_t> ids;
  const OutputCopies* copies = nullptr;  // of the outputs of `ids`; null: all scores are computed, and these picked
};

// One token to choose or to score. Several requests may share one hidden row (n samples after one prompt).
struct RowRequest {
  int32_t hidden_row = 0;
  int32_t target_token = -1;  // >= 0: score this token in the raw distribution instead of choosing one
  // > 0: a target's distribution is over the ids below this one; the log-probability of a target above is -inf.
  int32_t target_vocab = 0;
  const RowEdits* edits = nullptr;           // null: none. Unused for targets
  const VocabularySubset* subset = nullptr;  // null: all ids. Holds for targets, too
  float temperature = 0;                     // 0: the best token; ties go to the lower id
  int32_t top_k = 0;                         // 0: all
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;  // seed, seq_index and position are the key of the one random number (random.h)
  uint32_t seq_index = 0;
  uint32_t position = 0;
  bool wants_logprob = true;  // false: RowSample::logprob of the chosen token is 0. Unused for targets and beams
  int32_t num_logprobs = -1;  // >= 0: lists this many of the best tokens, and computes the token's rank
  // > 0: a beam's row. Lists this many of the best tokens (RowSample holds the first), with edited log-probabilities
  // that are normalised again only if edits->renormalize. Temperature, filters and num_logprobs are unused.
  int32_t num_candidates = 0;
};

// Values of RowSample::token_id that are no token:
inline constexpr int32_t kNotNumbers = -1;   // the scores are not numbers: the checkpoint is broken
inline constexpr int32_t kNothingLeft = -2;  // every token is forbidden

struct RowSample {
  int32_t token_id = kNotNumbers;
  float logprob = 0;    // natural, of the edited distribution before temperature and filters; of a target: the raw one
  int32_t rank = 0;     // 1: the best; 0: not computed (num_logprobs < 0, no beam), or a target of probability 0
  int32_t num_top = 0;  // entries of this row in SampleOutput::top, from top_begin on
  int64_t top_begin = 0;
  // The encoder position that the row attends to most; -1: not requested. The model runner sets it, not `select`.
  int32_t source_index = -1;
};

// Reused from step to step: vectors keep their memory.
struct SampleOutput {
  std::vector<RowSample> rows;    // one per RowRequest, in their order
  std::vector<TokenLogprob> top;  // of each row, best first; without tokens of probability 0
};

}  // namespace transept

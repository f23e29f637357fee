// Beam search as pure functions: scores in, {parent, token} out. The caller keeps sequences, blocks and texts. Source:
// transformers (GenerationMixin._beam_search); the search with patience: openai-whisper (decoding.py, BeamSearchDecoder
// and MaximumLikelihoodRanker). Thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "core/request_output.h"
#include "core/sampling_params.h"

namespace transept {

// A running beam: the sum of its log-probabilities, and the best next tokens of its row (edited log-probabilities, best
// first).
struct BeamRow {
  double sum = 0;
  std::span<const TokenLogprob> next;
};

// A beam and a next token.
struct BeamContinuation {
  int32_t parent = 0;  // index of the running beam
  int32_t entry = 0;   // index in its BeamRow::next
  int32_t token_id = 0;
  double sum = 0;  // of log-probabilities, the token's included
};

struct BeamStep {
  std::vector<BeamContinuation> running;  // at most num_beams, best first
  std::vector<BeamContinuation> ended;    // hypotheses, best first
};

// Returns how many of a row's best tokens make beam_search exact, if at most `num_ends` tokens can end a beam.
constexpr int32_t num_beam_candidates(int32_t num_beams, int32_t num_ends) { return num_beams + num_ends; }

// num_ending_ranks of openai-whisper's search with patience: a continuation that ends need only be better than the last
// one that runs on.
inline constexpr int32_t kAnyRank = std::numeric_limits<int32_t>::max();

// Fills `step` for one step of the search. The num_beams best continuations that do not end run on. A continuation that
// ends becomes a hypothesis if it is among the num_ending_ranks best of all (Hugging Face and CTranslate2:
// num_beams; openai-whisper: kAnyRank). Ties go to the earlier beam, then to the lower token. `ends` is called in
// order, best first, and only as often as needed. Fewer than num_beams run on where the rows list fewer tokens.
void beam_search(int32_t num_beams, int32_t num_ending_ranks, std::span<const BeamRow> beams,
                 FunctionRef<bool(const BeamContinuation& continuation)> ends, BeamStep& step);

// Returns sum / length ^ length_penalty. REQUIRES: length > 0.
double hypothesis_score(double sum, int32_t length, float length_penalty);

struct BeamStopRule {
  int32_t num_beams = 1;
  float length_penalty = 1;
  SamplingParams::EarlyStopping early_stopping = SamplingParams::EarlyStopping::kFalse;
  int32_t max_length = 0;  // the longest possible `length` of hypothesis_score()
};

// Whether the search is over (Hugging Face), given the number of kept hypotheses (the num_beams best), the score of the
// worst of them, and the sum and length of the best running beam.
bool is_beam_search_done(const BeamStopRule& rule, int32_t num_hypotheses, double worst_score, double best_sum,
                         int32_t length);

// Returns the number of hypotheses that end the search with patience: num_beams * patience, rounded half to even, at
// least 1. The first ones to end are kept.
int32_t num_patience_hypotheses(int32_t num_beams, double patience);

// Returns the score of an answer of the search with patience: sum / max(length, 1), or
// sum / ((5 + length) / 6) ^ length_penalty if that is set (Wu et al. 2016, section 7). The token that ended the answer
// counts in the sum, not in the length.
double likelihood_score(double sum, int32_t length, std::optional<double> length_penalty);

}  // namespace transept

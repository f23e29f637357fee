// Beam search as pure functions: scores in, {parent, token} out. Keeping sequences, blocks and texts is not its
// business. The rules are transformers' (GenerationMixin._beam_search), as the golden README spells them out, or
// openai-whisper's (decoding.py: BeamSearchDecoder, MaximumLikelihoodRanker), the search with patience.
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

// A running beam: the sum of its log-probabilities, and its row's best next tokens (edited log-probabilities, best
// first).
struct BeamRow {
  double sum = 0;
  std::span<const TokenLogprob> next;
};

// One way to go on.
struct BeamContinuation {
  int32_t parent = 0;  // index of the running beam
  int32_t entry = 0;   // index in its BeamRow::next
  int32_t token_id = 0;
  double sum = 0;  // the parent's and the token's
};

struct BeamStep {
  std::vector<BeamContinuation> running;  // num_beams at most, best first
  std::vector<BeamContinuation> ended;    // hypotheses, best first
};

// How many of a row's best tokens are enough for beam_search to be exact, if at most `num_ends` of them can end a
// beam.
constexpr int32_t num_beam_candidates(int32_t num_beams, int32_t num_ends) { return num_beams + num_ends; }

// Where a continuation that ends must stand to be a hypothesis: with patience it need only be better than the last that
// goes on.
inline constexpr int32_t kAnyRank = std::numeric_limits<int32_t>::max();

// The num_beams best continuations of all beams that do not end go on; those that end become hypotheses if they are
// among the num_ending_ranks best of all (Hugging Face: num_beams; patience: kAnyRank). Ties go to the earlier beam,
// then to the lower token. `ends` is asked in order, best first, and of no more than are needed. Fewer than num_beams
// go on where fewer have any probability.
void beam_search(int32_t num_beams, int32_t num_ending_ranks, std::span<const BeamRow> beams,
                 FunctionRef<bool(const BeamContinuation& continuation)> ends, BeamStep& step);

// sum / length ^ length_penalty.
double hypothesis_score(double sum, int32_t length, float length_penalty);

struct BeamStopRule {
  int32_t num_beams = 1;
  float length_penalty = 1;
  SamplingParams::EarlyStopping early_stopping = SamplingParams::EarlyStopping::kFalse;
  int32_t max_length = 0;  // what length can become (the unit of hypothesis_score's)
};

// Whether the search is over when num_hypotheses (the num_beams best) are kept, the worst of them with worst_score, and
// the best running beam has come to best_sum at `length`.
bool is_beam_search_done(const BeamStopRule& rule, int32_t num_hypotheses, double worst_score, double best_sum,
                         int32_t length);

// The search with patience is over when so many hypotheses have ended, first come, first kept: num_beams * patience,
// rounded half to even, and at least 1.
int32_t num_patience_hypotheses(int32_t num_beams, double patience);

// What ranks its answers: sum / length, or sum / ((5 + length) / 6) ^ length_penalty (Wu et al. 2016, section 7). The
// token that ended the answer is in the sum, and not in the length; nothing counts as one token.
double likelihood_score(double sum, int32_t length, std::optional<double> length_penalty);

}  // namespace transept

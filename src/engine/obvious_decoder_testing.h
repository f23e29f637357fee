// For tests: computes a request's answer in the most obvious way. One request at a time; all scores are computed anew
// at every step from the request's tokens alone, in double. No blocks, no batch, nothing of src/sampling or src/engine
// but the definition of the random number. Written from the reference's rules: SEMANTICS of penalties, bans and ends,
// transformers' GenerationMixin._beam_search (generation/utils.py), and openai-whisper's BeamSearchDecoder and
// ApplyTimestampRules (decoding.py).
//
// Compiled into the tests of this folder only (obvious_decoder_testlib.cc).
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/prompt.h"
#include "core/request_output.h"
#include "core/sampling_params.h"

namespace transept::testing {

// Raw scores of the token that follows the decoder's tokens (prompt and answer so far).
using Scorer = std::function<std::vector<float>(std::span<const int32_t> encoder, std::span<const int32_t> decoder)>;

struct ObviousOutput {
  std::vector<int32_t> token_ids;
  double cumulative_logprob = 0;
  FinishReason finish_reason = FinishReason::kNone;
  std::variant<std::monostate, int32_t, std::string> stop_reason;
  std::vector<std::vector<double>> logprobs;  // [tokens, vocab] of the edited distribution; of beams if requested
};

struct ObviousAnswer {
  std::vector<ObviousOutput> outputs;    // by index; beams and best_of best first
  std::vector<ObviousOutput> samples;    // all of them, by index; not for beams
  bool nothing_left = false;             // bans left no token to choose
  std::vector<double> prompt_logprobs;   // of prompt tokens 1.. in the raw distribution
  double probe_logprob = 0;              // if requested
  std::set<std::vector<int32_t>> beams;  // every beam that ever ran, and every hypothesis
  // The closest decision, in units of the possible error of float arithmetic: below 1, rounding decides the answer.
  double margin = 1e9;
};

// Ignores stop strings, which need a tokenizer. REQUIRES: forced tokens are not suppressed.
ObviousAnswer decode_obviously(const EncoderDecoderInputs& inputs, const SamplingParams& params, const Scorer& scorer);

}  // namespace transept::testing

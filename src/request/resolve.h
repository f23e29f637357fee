// From what a request gave to what the engine runs: request > generation_config.json > default (SEMANTICS.md, Where
// values come from). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/generation_config.h"
#include "core/sampling_params.h"
#include "request/request.h"

namespace transept {

// What a request is measured against.
struct ModelLimits {
  int64_t vocab_size = 0;             // every token id is below
  int32_t max_decoder_positions = 0;  // decoder prompt + generated tokens at most
  bool positions_are_set = false;     // by --max-model-len or its default, not by the model
  int32_t decoder_prompt_tokens = 0;  // of this request, >= 1
  uint64_t engine_seed = 0;           // with request_index: the seed of requests that name none
  uint64_t request_index = 0;
  bool score_only = false;  // --score: nothing is generated, max_tokens plays no part
};

// Errors name the field that the request wrote. kInvalidArgument: ids outside the vocabulary, values that contradict
// each other. kOutOfRange (a client's error too): the decoder prompt exceeds or fills the positions, or
// max_tokens exceeds them, with both numbers; what the prompt and max_tokens exceed them by together is not generated.
// A beam search of generation_config.json holds where a request says nothing about beams or sampling. bad_words_ids are
// the model's and the request's; bad_words are not among them (PromptOptions::bad_words). score_only: max_tokens is 1,
// min_tokens 0, n 1, and prompt_logprobs 0 where the request gives none.
StatusOr<SamplingParams> resolve(const RequestOverrides& request, const GenerationConfig& model,
                                 const ModelLimits& limits);

// One line for every decoding default that the model's files change, and for every one that is not supported.
std::vector<std::string> startup_notes(const GenerationConfig& model);

}  // namespace transept

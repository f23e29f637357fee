// Resolves the fields of a request to the SamplingParams that the engine runs: the request's value, else that of
// generation_config.json, else the default (docs/api.md, Where values come from). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/generation_config.h"
#include "core/sampling_params.h"
#include "request/request.h"

namespace transept {

// The limits that a request is checked against, and its place.
struct ModelLimits {
  int64_t vocab_size = 0;             // token ids are below this
  int32_t max_decoder_positions = 0;  // bound of decoder prompt + generated tokens
  bool positions_are_set = false;     // the bound is --max-model-len or its default, not the model's
  int32_t decoder_prompt_tokens = 0;  // of this request, >= 1
  uint64_t engine_seed = 0;           // with request_index, gives the seed of a request without one
  uint64_t request_index = 0;
  bool score_only = false;  // --score, /v1/score: generates nothing and ignores max_tokens
};

// Resolves one request. The beam search of generation_config.json applies if the request says nothing about beams or
// sampling. max_tokens is cut to the positions that the decoder prompt leaves. bad_words_ids are the model's, then the
// request's; bad_words are not among them (PromptOptions::bad_words). score_only: max_tokens is 1, min_tokens 0, n 1,
// num_beams 1, and prompt_logprobs defaults to 0.
// Errors name the field that the request wrote. kInvalidArgument: an id outside the vocabulary, an empty
// allowed_token_ids, or values that contradict each other. kOutOfRange (also the client's error), with the numbers: the
// decoder prompt exceeds the positions, or fills them (unless score_only); max_tokens exceeds them; the decoder prompt
// leaves nothing of the model's max_length.
StatusOr<SamplingParams> resolve(const RequestOverrides& request, const GenerationConfig& model,
                                 const ModelLimits& limits);

// Returns how many answers resolve() gives such a request, if it takes it: params.n.
int32_t num_answers(const RequestOverrides& request, const GenerationConfig& model);

// Returns a line for each decoding default that the model's files change, and for each of their fields that is not
// supported.
std::vector<std::string> startup_notes(const GenerationConfig& model);

}  // namespace transept

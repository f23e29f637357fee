// From a parsed request to what the engine takes: prompts tokenised, sampling settled against the model's files. What
// every surface (JSONL, command line, later HTTP) calls. Pure but for the model's tables: thread-safe.
#pragma once

#include <cstdint>

#include "core/generation_config.h"
#include "core/prompt.h"
#include "core/sampling_params.h"
#include "engine/prompt_processor.h"
#include "request/request.h"
#include "request/resolve.h"

namespace transept {

struct PreparedRequest {
  EncoderDecoderInputs inputs;
  SamplingParams params;
};

struct PrepareOptions {
  uint64_t engine_seed = 0;
  uint64_t request_index = 0;  // with the seed the key of requests that name no seed of their own
  bool score_only = false;     // --score
};

// Errors name the field of the request.
StatusOr<PreparedRequest> prepare_request(const ParsedRequest& request, const PromptProcessor& prompts,
                                          const GenerationConfig& generation, const PrepareOptions& options);

}  // namespace transept

// Turns a parsed request into what the engine takes: prompts tokenised, sampling resolved against the model's files.
// Every surface (JSONL, command line, HTTP) calls it. Pure but for the model's tables. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/generation_config.h"
#include "core/prompt.h"
#include "core/sampling_params.h"
#include "prompts/prompt_processor.h"
#include "request/request.h"
#include "request/resolve.h"

namespace transept {

struct PreparedRequest {
  EncoderDecoderInputs inputs;
  SamplingParams params;
};

// A number from a request's id (FNV-1a), so that the texts of unseeded requests do not depend on their order of
// arrival.
constexpr uint64_t seed_key(std::string_view id) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : id) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

struct PrepareOptions {
  uint64_t engine_seed = 0;
  uint64_t request_key = 0;  // with engine_seed the seed of requests that name none (seed_key of their id)
  bool score_only = false;   // --score
  // The items of the handle (AsyncEngine::encode) that has the encoder's side; unset: the request has both sides.
  std::optional<std::span<const EncoderItem>> encoded = {};
  MediaAccess media = {};
};

// Makes the ids of an expected answer of its text, once for a request of many prompts: the prediction is "" afterwards.
// No-op without one. Errors: both forms are given; those of PromptProcessor::prediction_ids.
Status take_prediction(const PromptProcessor& prompts, ParsedRequest& request);

// Errors name the field of the request.
StatusOr<PreparedRequest> prepare_request(const ParsedRequest& request, const PromptProcessor& prompts,
                                          const GenerationConfig& generation, const PrepareOptions& options);

}  // namespace transept

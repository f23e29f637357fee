// What completions and chat completions have in common: one answer of JSON, or a stream of pieces that are the same
// when joined, from the outputs of the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/prompt.h"
#include "disagg/injected_input.h"
#include "request/request.h"
#include "server/answer_spelling.h"
#include "server/server_context.h"

namespace transept {

struct AnswersRequest {
  ParsedRequest parsed;
  std::string model;  // for the answer
  std::vector<EncoderDecoderPrompt> prompts;
  InjectedInputs injected;  // encoded_inputs.h
};

// Runs the request and answers `call`, with its errors, too. Errors that it leaves to the caller: stream_options
// without a stream (kInvalidArgument).
Status start_answers(const ServerContext& context, const ApiCallPtr& call, AnswersRequest request,
                     std::unique_ptr<const AnswerSpelling> spelling);

}  // namespace transept

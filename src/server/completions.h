// POST /v1/completions: OpenAI's, with encoder/decoder prompts in every form (docs/api.md, Prompt forms).
#pragma once

#include "server/server_context.h"

namespace transept {

// Answers `call`, now or through the engine's callbacks. Runs on a thread of `context.workers`.
void handle_completion(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept

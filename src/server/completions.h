// POST /v1/completions: OpenAI's, with encoder/decoder prompts in every form. On a thread of `context.workers`.
#pragma once

#include "server/server_context.h"

namespace transept {

void handle_completion(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept

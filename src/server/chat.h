// POST /v1/chat/completions: OpenAI's, with the fields of a completion (docs/server.md, Chat completions).
#pragma once

#include "server/server_context.h"

namespace transept {

// Answers `call`, now or through the engine's callbacks. Runs on a thread of `context.workers`.
void handle_chat(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept

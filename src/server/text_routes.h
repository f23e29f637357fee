// POST /v1/score and /v1/translate, which run on threads of `context.workers`; POST /tokenize and /detokenize, which
// run on threads of `context.workers` or `long_workers`. Each handler answers `call`, now or through the engine's
// callbacks. Thread-safe.
#pragma once

#include "server/server_context.h"

namespace transept {

void handle_score(const ServerContext& context, const ApiCallPtr& call);
void handle_translate(const ServerContext& context, const ApiCallPtr& call);
void handle_tokenize(const ServerContext& context, const ApiCallPtr& call);
void handle_detokenize(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept

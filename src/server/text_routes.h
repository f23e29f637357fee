// POST /v1/score and /v1/translate, on a thread of `context.workers`; /tokenize and /detokenize, on one of
// `context.tokenizers`.
#pragma once

#include "server/server_context.h"

namespace transept {

void handle_score(const ServerContext& context, const ApiCallPtr& call);
void handle_translate(const ServerContext& context, const ApiCallPtr& call);
void handle_tokenize(const ServerContext& context, const ApiCallPtr& call);
void handle_detokenize(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept

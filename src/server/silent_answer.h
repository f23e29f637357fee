// The answer to a prompt of audio without speech: an empty text, without the engine, since models hallucinate
// in silence ("you", "Thank you."). Of completions and chats; transcriptions pass over silent windows themselves
// (TranscribeOptions::skip_silence). A pure function: thread-safe.
#pragma once

#include <optional>

#include "async/async_engine.h"
#include "base/clock.h"
#include "core/request_output.h"
#include "request/request.h"
#include "server/server_context.h"

namespace transept {

// Returns the finished output: each of params.n answers is empty and ends with kStop, without a token. Takes the
// prompts out of `spec` then. nullopt: the engine answers, because there is speech or no audio, or the server
// (--skip-silence off) or the request asks for what the model makes of it: vad_filter false, min_tokens, ignore_eos,
// numbers of the decoder prompt. `arrival`: of the request. REQUIRES: spec's inputs and params are set.
std::optional<RequestOutput> silent_answer(const ServerContext& context, const ParsedRequest& parsed, TimePoint arrival,
                                           RequestSpec& spec);

}  // namespace transept

// POST /v1/audio/transcriptions and /v1/audio/translations: transcribes the file of a form, and answers with the whole
// transcript or with events. Thread-safe.
#pragma once

#include "server/server_context.h"

namespace transept {

// Answers `call`. Runs on a thread of `context.transcribers`, and returns when the answer is complete. If the client
// goes, the transcription ends within one step. `translate`: into English.
void handle_transcription(const ServerContext& context, const ApiCallPtr& call, bool translate);

}  // namespace transept

// POST /v1/audio/transcriptions and /v1/audio/translations: a form with a file to a transcript, whole or as events.
#pragma once

#include "server/server_context.h"

namespace transept {

// On a thread of `context.transcribers`, which it holds until the last byte; a client that goes ends the transcription
// within one step. `translate`: into English.
void handle_transcription(const ServerContext& context, const ApiCallPtr& call, bool translate);

}  // namespace transept

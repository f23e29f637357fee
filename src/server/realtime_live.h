// LiveHost and LiveSession (speech/live_session.h) as what /v1/realtime asks for.
#pragma once

#include <memory>

#include "base/status.h"
#include "server/realtime_session.h"
#include "speech/live_session.h"

namespace transept {

// Copies the model's struct; the parts that it points to must outlive this. Errors: LiveHost::create's.
StatusOr<std::unique_ptr<RealtimeSpeech>> make_live_speech(const SpeechModel& model, const LiveHost::Options& options);

}  // namespace transept

// A transept_audio as what the engine reads. Pure functions: thread-safe.
#pragma once

#include "base/status.h"
#include "capi/transept.h"
#include "speech/transcription.h"

namespace transept {

// Errors: read_struct's.
StatusOr<transept_audio> read_audio_struct(const transept_audio* audio);

// Borrows bytes and samples. Errors: not one of path, bytes and samples; a file that cannot be opened.
StatusOr<AudioSource> audio_source(const transept_audio& audio);

}  // namespace transept

// The options of transept_transcribe and of transept_transcript_write, from JSON. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "speech/subtitles.h"
#include "speech/transcribe_options.h"

namespace transept {

// `options`: an object with openai-whisper's names and those of docs/library.md. Errors (kInvalidArgument) name the
// option: unknown, of another kind, or check_transcribe_options'.
StatusOr<TranscribeOptions> transcribe_options_of(const Json& options);

// The same for subtitles, whose range check_subtitle_options checks.
StatusOr<SubtitleOptions> subtitle_options_of(const Json& options);

// Errors (kInvalidArgument): an unknown name.
StatusOr<TranscriptFormat> transcript_format_of(std::string_view name);

}  // namespace transept

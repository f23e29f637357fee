// A transcript as OpenAI's answers. Pure functions: thread-safe.
#pragma once

#include <optional>

#include "base/json.h"
#include "net/http.h"
#include "server/transcription_ask.h"
#include "speech/transcriber.h"

namespace transept {

// The whole answer, in the format that was asked for.
HttpResponse transcription_reply(const Transcript& transcript, const TranscriptionAsk& ask);

// {"type": "transcript.text.segment", "id", "start", "end", "text", "speaker", ..., "words"}: one of a stream of
// kVerboseJson. OpenAI's event, in which the id is a text and a speaker must stand (""): then all else that a segment
// of verbose_json has, and its words where these were asked for.
Json segment_event(const Segment& segment, const TranscriptionAsk& ask);
// What verbose_json says of the whole ("task", "language", "duration", "text"), appended to an object.
void append_verbose_head(const Transcript& transcript, const TranscriptionAsk& ask, Json& json);

// {"type": "duration", "seconds": ..}: begun seconds, as OpenAI counts them.
Json duration_usage(double seconds);
// {"type": "tokens", "input_tokens", "input_token_details", "output_tokens", "total_tokens"}. None: a model whose
// windows have different numbers of positions.
std::optional<Json> token_usage(const SpeechModel& speech, const TranscribeCounts& counts);

}  // namespace transept

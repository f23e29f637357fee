// Formats a transcript as OpenAI's answers. Pure functions: thread-safe.
#pragma once

#include <optional>

#include "base/json.h"
#include "net/http.h"
#include "server/transcription_ask.h"
#include "speech/transcriber.h"

namespace transept {

// Returns the whole answer in ask.format.
HttpResponse transcription_reply(const Transcript& transcript, const TranscriptionAsk& ask);

// Returns the event of a segment in a stream of kVerboseJson: {"type": "transcript.text.segment", "speaker", "id",
// "start", "end", "text", ..., "words"}. As in OpenAI's event the id is a string and speaker is required (""). It has
// all other members of a segment of verbose_json, and "words" if ask.with_words.
Json segment_event(const Segment& segment, const TranscriptionAsk& ask);
// Appends the members of verbose_json about the whole transcript to an object: "task", "language", "duration"
// (seconds), "text".
void append_verbose_head(const Transcript& transcript, const TranscriptionAsk& ask, Json& json);

// Returns {"type": "duration", "seconds": ..}, with the seconds rounded up, as OpenAI counts them.
Json duration_usage(double seconds);
// Returns {"type": "tokens", "input_tokens", "input_token_details", "output_tokens", "total_tokens"}; none for a model
// whose windows differ in their number of positions.
std::optional<Json> token_usage(const SpeechModel& speech, const TranscribeCounts& counts);

}  // namespace transept

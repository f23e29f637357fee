// What the fields of a form ask of a transcription, and how its errors are reported to the client. Pure functions:
// thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "request/request.h"
#include "server/server_context.h"
#include "speech/transcribe_options.h"

namespace transept {

enum class TranscriptionFormat : uint8_t { kJson, kText, kSrt, kVtt, kVerboseJson };

struct TranscriptionAsk {
  TranscribeOptions options;
  TranscriptionFormat format = TranscriptionFormat::kJson;
  bool stream = false;
  bool with_progress = false;                     // of a stream of kVerboseJson
  bool with_words = false, with_segments = true;  // of kVerboseJson; a stream has segments in any case
};

// `translate`: into English. REQUIRES: context.speech. Errors name the form's field: what the model or the format has
// not; fields that contradict each other.
StatusOr<TranscriptionAsk> transcription_ask(const ServerContext& context, const ParsedRequest& request,
                                             bool translate);

// A Transcriber's error by the names of the form: its options are other fields' ("initial_prompt" is prompt), and what
// it says of no option is about the file.
Status as_form_error(const Status& error);

}  // namespace transept

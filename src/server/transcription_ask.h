// Converts the fields of a form to the options of a transcription, and the errors of a transcription to errors of the
// form. Pure functions: thread-safe.
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
  bool with_progress = false;                     // for a stream of kVerboseJson
  bool with_words = false, with_segments = true;  // for kVerboseJson; a stream always has segments
};

// Checks and converts the fields. `translate`: into English. Errors (kInvalidArgument) name the form's field: the model
// or the format does not support it, it asks for more beams than the engine runs, or fields contradict
// each other. REQUIRES: context.speech.
StatusOr<TranscriptionAsk> transcription_ask(const ServerContext& context, const ParsedRequest& request,
                                             bool translate);

// Converts a Transcriber's kInvalidArgument to the names of the form: "initial_prompt" becomes prompt, and an error of
// no option is one of the file. An option that no field sets gives an error without error_param. Other codes are
// unchanged.
Status as_form_error(const Status& error);

}  // namespace transept

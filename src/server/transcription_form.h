// Reads the form of a transcription: its file, and its fields. A pure function: thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "media/audio_reader.h"
#include "net/http.h"
#include "request/request.h"
#include "server/server_context.h"

namespace transept {

struct TranscriptionForm {
  AudioBytes audio;  // a view of the body, which it shares ownership of
  ParsedRequest request;
  Json fields;  // without the audio, for the log
};

// Reads the form in `body`, the body of `head`. Errors name the field. kInvalidArgument: a Content-Type other than
// multipart/form-data; all that parse_multipart refuses; no file, an empty one or several; a field given twice that is
// no list; a field that is not UTF-8. Errors of parse_body. kResourceExhausted: a file of more than max_upload_bytes,
// which the caller answers with 413.
StatusOr<TranscriptionForm> read_transcription_form(const HttpRequest& head, std::string body, FieldRoutes route,
                                                    const ServerOptions& options);

}  // namespace transept

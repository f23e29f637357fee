// The form that comes with audio: its file, and its fields as every other body's. A pure function: thread-safe.
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
  AudioBytes audio;  // a view of the body, which it keeps
  ParsedRequest request;
  Json fields;  // as they were read: for the log, which never sees the audio
};

// `body` belongs to `head`. Errors: another Content-Type than multipart/form-data; what parse_multipart and parse_body
// refuse; no file, or several; a field given twice that is no list; one that is not UTF-8 (all of them 400, by the
// field's name). kResourceExhausted: a file of more than max_upload_bytes (413).
StatusOr<TranscriptionForm> read_transcription_form(const HttpRequest& head, std::string body, FieldRoutes route,
                                                    const ServerOptions& options);

}  // namespace transept

// A transcription's answer as server-sent events: transcript.text.delta for each segment of a window, when the window
// is done; exactly one transcript.text.done; [DONE]. With verbose_json a transcript.text.segment follows each segment's
// delta, and with include_progress a transept.progress each window, also one without a segment.
#pragma once

#include <string>

#include "server/server_context.h"
#include "server/transcript_text.h"
#include "server/transcription_ask.h"

namespace transept {

// Used by one thread at a time. Borrows the context.
class TranscriptionStream final {
 public:
  // REQUIRES: context.speech.
  TranscriptionStream(const ServerContext& context, ApiCallPtr call, TranscriptionAsk ask);

  // The head; once. Until then an error can be a plain answer. Everything below begins first.
  void begin();
  bool has_begun() const { return has_begun_; }

  void add(const Segment& segment);
  // Seconds of the audio that are done, of all.
  void progress(double done, double all);
  void finish(const TranscribeResult& result);
  // An event {"error": ..} in the place of the done event.
  void fail(const Status& error);

 private:
  void send_delta(std::string piece);
  void send(const Json& event);

  const ServerContext& context_;
  const ApiCallPtr call_;
  const TranscriptionAsk ask_;
  const bool is_verbose_;
  TranscriptText text_;
  bool has_begun_ = false;
};

}  // namespace transept

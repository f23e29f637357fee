// Sends the answer of a transcription as server-sent events: a transcript.text.delta for each segment with text, when
// its window is done; one transcript.text.done; [DONE]. With verbose_json a transcript.text.segment follows each
// segment's delta. With include_progress a transept.progress follows each window, also one without a segment.
#pragma once

#include <string>

#include "server/server_context.h"
#include "server/transcript_text.h"
#include "server/transcription_ask.h"

namespace transept {

// Owned by one transcription. Borrows the context. Not thread-safe.
class TranscriptionStream final {
 public:
  // REQUIRES: context.speech.
  TranscriptionStream(const ServerContext& context, ApiCallPtr call, TranscriptionAsk ask);

  // Sends the head; later calls have no effect. Before it an error can be a plain answer. Functions that send an event
  // call it first.
  void begin();
  bool has_begun() const { return has_begun_; }

  void add(const Segment& segment);
  // Sends the progress, in seconds of audio, if ask.with_progress.
  void progress(double done, double all);
  // Sends the rest of the text, the done event and [DONE].
  void finish(const TranscribeResult& result);
  // Sends an event {"error": ..} in place of the done event, then [DONE]. Logs an internal error.
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

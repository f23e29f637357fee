#include "server/transcription_stream.h"

#include <algorithm>

#include "net/sse.h"
#include "request/result_json.h"
#include "server/replies.h"
#include "server/transcription_reply.h"

namespace transept {

TranscriptionStream::TranscriptionStream(const ServerContext& context, ApiCallPtr call, TranscriptionAsk ask)
    : context_(context),
      call_(std::move(call)),
      ask_(std::move(ask)),
      is_verbose_(ask_.format == TranscriptionFormat::kVerboseJson),
      text_(*context.speech) {}

void TranscriptionStream::begin() {
  if (has_begun_) return;
  has_begun_ = true;
  HttpResponse head;
  head.content_type = kSseContentType;
  // Proxies must neither keep nor gather events.
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  call_->responder->start_stream(std::move(head));
}

void TranscriptionStream::add(const Segment& segment) {
  send_delta(text_.add(segment));
  if (is_verbose_) send(segment_event(segment, ask_));
}

void TranscriptionStream::progress(double done, double all) {
  if (!ask_.with_progress) return;
  send(Json(Json::Object{{"type", "transept.progress"}, {"seconds_done", std::min(done, all)}, {"seconds_all", all}}));
}

void TranscriptionStream::finish(const TranscribeResult& result) {
  send_delta(text_.finish());
  Json done(Json::Object{{"type", "transcript.text.done"}, {"text", text_.text()}});
  if (is_verbose_) append_verbose_head(result.transcript, ask_, done);
  if (std::optional<Json> usage = token_usage(*context_.speech, result.counts)) done.set("usage", *std::move(usage));
  send(done);
  call_->responder->write(std::string(kSseDone));
  call_->responder->finish();
}

void TranscriptionStream::fail(const Status& error) {
  log_if_internal(context_, *call_, error);
  begin();
  std::string event;
  append_sse_event(event, error_response(error, context_.admission).body);
  event += kSseDone;
  call_->responder->write(std::move(event));
  call_->responder->finish();
}

void TranscriptionStream::send_delta(std::string piece) {
  if (piece.empty()) return;
  send(Json(Json::Object{{"type", "transcript.text.delta"}, {"delta", std::move(piece)}}));
}

void TranscriptionStream::send(const Json& event) {
  begin();
  std::string piece;
  append_sse_event(piece, event.dump());
  call_->responder->write(std::move(piece));
}

}  // namespace transept

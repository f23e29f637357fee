#include "server/realtime_output.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"

namespace transept {
namespace {

int64_t microseconds(Duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d).count(); }

}  // namespace

template <typename Write>
void RealtimeOutput::send(RealtimeCounts::Out kind, const Write& write) {
  if (socket_ == nullptr) return;
  RealtimeEvents events(ids_);
  write(*dialect_, events);
  for (RealtimeEvents::Event& event : events.take()) {
    ++counts_.out[kind];
    socket_->send(std::move(event.text), /*is_text=*/true);
  }
}

void RealtimeOutput::open(std::shared_ptr<WebSocket> socket, RealtimeView session) {
  const MutexLock lock(mutex_);
  socket_ = std::move(socket);
  view_ = std::move(session);
  view_.id = ids_.session();
  const RealtimeView view = view_;
  send(RealtimeCounts::kSession, [&](const auto& dialect, auto& out) { dialect.created(view, out); });
}

void RealtimeOutput::set_dialect(const RealtimeDialect& dialect) {
  const MutexLock lock(mutex_);
  dialect_ = &dialect;
}

void RealtimeOutput::updated(const RealtimeConfig& config) {
  const MutexLock lock(mutex_);
  view_.config = config;
  const RealtimeView view = view_;
  send(RealtimeCounts::kSession, [&](const auto& dialect, auto& out) { dialect.updated(view, out); });
}

void RealtimeOutput::error(const RealtimeError& error, const std::string& event_id) {
  const MutexLock lock(mutex_);
  send(RealtimeCounts::kOutError, [&](const auto& dialect, auto& out) { dialect.error(error, event_id, out); });
}

void RealtimeOutput::add_owed(int count) {
  const MutexLock lock(mutex_);
  num_owed_ += count;
}

void RealtimeOutput::completed_empty() {
  const MutexLock lock(mutex_);
  if (num_owed_ > 0) return;
  send(RealtimeCounts::kCompleted,
       [](const auto& dialect, auto& out) { dialect.completed("", LiveTranscript(), out); });
}

void RealtimeOutput::on_audio(bool has_turns) {
  const MutexLock lock(mutex_);
  set_patient(has_turns && items_.empty());
}

void RealtimeOutput::set_patient(bool is_patient) {
  if (socket_ == nullptr || std::exchange(is_patient_, is_patient) == is_patient) return;
  socket_->set_patient(is_patient);
}

void RealtimeOutput::pause() {
  const MutexLock lock(mutex_);
  if (paused_since_.has_value() || socket_ == nullptr) return;
  paused_since_ = clock_.now();
  set_reading();
}

void RealtimeOutput::set_busy(bool is_busy) {
  const MutexLock lock(mutex_);
  is_busy_ = is_busy;
  set_reading();
}

void RealtimeOutput::set_reading() {
  const bool reads = !is_busy_ && !paused_since_.has_value();
  if (socket_ == nullptr || reads == is_reading_) return;
  is_reading_ = reads;
  reads ? socket_->resume_reading() : socket_->pause_reading();
}

void RealtimeOutput::on_audio_taken() {
  const MutexLock lock(mutex_);
  if (!paused_since_.has_value()) return;
  counts_.paused_us += microseconds(clock_.now() - *paused_since_);
  paused_since_.reset();
  set_reading();
}

void RealtimeOutput::flush() {
  const MutexLock lock(mutex_);
  std::vector<int64_t> waiting;
  for (const auto& [number, item] : items_) {
    if (!item.waiting.empty()) waiting.push_back(number);
  }
  for (const int64_t number : waiting) {
    if (!is_slow()) send_waiting(number);
  }
}

void RealtimeOutput::close(uint16_t code, std::string_view why) {
  const MutexLock lock(mutex_);
  if (socket_ != nullptr) socket_->close(code, why);
}

void RealtimeOutput::close_when_finished(uint16_t code, std::string_view why) {
  const MutexLock lock(mutex_);
  closing_ = {.code = code, .why = std::string(why)};
  if (is_finished_ && socket_ != nullptr) socket_->close(code, why);
}

void RealtimeOutput::on_finished() {
  const MutexLock lock(mutex_);
  is_finished_ = true;
  if (closing_.has_value() && socket_ != nullptr) socket_->close(closing_->code, closing_->why);
}

bool RealtimeOutput::is_slow() const { return socket_ != nullptr && socket_->num_unsent_bytes() > kSlowReaderBytes; }

void RealtimeOutput::send_waiting(int64_t item) {
  const std::string text = std::exchange(items_[item].waiting, {});
  if (text.empty()) return;
  const std::string id = ids_.item(item);
  send(RealtimeCounts::kDelta, [&](const auto& dialect, auto& out) { dialect.delta(id, text, out); });
}

void RealtimeOutput::on_speech_started(int64_t item, int64_t audio_start_ms) {
  const MutexLock lock(mutex_);
  items_[item] = {};
  set_patient(false);
  const std::string id = ids_.item(item);
  send(RealtimeCounts::kSpeech,
       [&](const auto& dialect, auto& out) { dialect.speech_started(id, audio_start_ms, out); });
}

void RealtimeOutput::on_speech_stopped(int64_t item, int64_t audio_end_ms) {
  const MutexLock lock(mutex_);
  send_waiting(item);
  const std::string id = ids_.item(item);
  send(RealtimeCounts::kSpeech, [&](const auto& dialect, auto& out) { dialect.speech_stopped(id, audio_end_ms, out); });
}

void RealtimeOutput::on_committed(int64_t item) {
  const MutexLock lock(mutex_);
  send_waiting(item);
  items_[item].committed_at = clock_.now();
  const std::string id = ids_.item(item);
  const std::string previous = std::exchange(last_committed_, id);
  send(RealtimeCounts::kCommitted, [&](const auto& dialect, auto& out) { dialect.committed(id, previous, out); });
}

void RealtimeOutput::on_cleared() {
  const MutexLock lock(mutex_);
  const auto is_open = [](const auto& item) { return item.second.committed_at == TimePoint{}; };
  std::erase_if(items_, is_open);
  ++counts_.ends[RealtimeCounts::kEndCleared];
  send(RealtimeCounts::kSession, [](const auto& dialect, auto& out) { dialect.cleared(out); });
}

void RealtimeOutput::on_delta(int64_t item, std::string_view text) {
  const MutexLock lock(mutex_);
  items_[item].waiting += text;
  if (!is_slow()) send_waiting(item);
}

// Only the newest is worth anything: a slow reader gets none.
void RealtimeOutput::on_hypothesis(int64_t item, std::string_view open) {
  const MutexLock lock(mutex_);
  if (is_slow()) return;
  const std::string id = ids_.item(item);
  send(RealtimeCounts::kHypothesis, [&](const auto& dialect, auto& out) { dialect.hypothesis(id, open, out); });
}

void RealtimeOutput::on_completed(int64_t item, const LiveTranscript& transcript) {
  const MutexLock lock(mutex_);
  send_waiting(item);
  count(item, transcript);
  const std::string id = ids_.item(item);
  send(RealtimeCounts::kCompleted, [&](const auto& dialect, auto& out) { dialect.completed(id, transcript, out); });
  end_item(item, RealtimeCounts::kEndCompleted);
}

void RealtimeOutput::on_failed(int64_t item, const Status& error) {
  const MutexLock lock(mutex_);
  send_waiting(item);
  const RealtimeError told = realtime_error(error);
  const std::string id = ids_.item(item);
  if (told.code == kInternalError) log_error("live ", id, ": ", error_message(error));
  send(RealtimeCounts::kFailed, [&](const auto& dialect, auto& out) { dialect.failed(id, told, out); });
  end_item(item, RealtimeCounts::kEndFailed);
}

void RealtimeOutput::end_item(int64_t item, RealtimeCounts::End end) {
  items_.erase(item);
  num_owed_ = std::max(0, num_owed_ - 1);
  ++counts_.ends[end];
}

// A request whose arrival is its commit. Its first token may be older: transcripts are begun in pauses.
void RealtimeOutput::count(int64_t item, const LiveTranscript& transcript) {
  const TimePoint arrival = items_[item].committed_at;
  if (transcript.was_revised) ++counts_.num_revised;
  counts_.audio_us += static_cast<int64_t>(std::clamp(transcript.seconds, 0.0, 1e9) * 1e6);
  metrics_.count_audio_seconds(transcript.seconds);
  const TranscribeTimes& times = transcript.times;
  FinishedRequest request{.queue_s = times.queue_s, .total_s = seconds(clock_.now() - arrival)};
  if (times.first_token.has_value()) request.first_token_s = seconds(*times.first_token - arrival);
  request.num_prompt_tokens = transcript.counts.num_encoder_tokens + transcript.counts.num_prompt_tokens;
  request.num_generated_tokens = transcript.counts.num_generated_tokens;
  request.num_intervals = times.num_intervals;
  request.interval_seconds = times.interval_seconds;
  request.finish_reasons = {FinishReason::kStop};
  metrics_.count_request(request);
}

}  // namespace transept

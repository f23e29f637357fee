#include "apps/live_turns.h"

#include <algorithm>

#include "base/log.h"

namespace transept {

void LiveTurns::on_speech_started(int64_t item, int64_t audio_start_ms) {
  const MutexLock lock(mutex_);
  turns_[item].start_ms = audio_start_ms;
}

void LiveTurns::on_speech_stopped(int64_t item, int64_t audio_end_ms) {
  const MutexLock lock(mutex_);
  turns_[item].end_ms = audio_end_ms;
}

void LiveTurns::on_delta(int64_t item, std::string_view text) {
  const MutexLock lock(mutex_);
  Turn& turn = turns_[item];
  turn.told += text;
  turn.open.clear();
  if (turn.is_shown) {
    console_.confirmed(text);
  } else {
    show_first();
  }
}

void LiveTurns::on_hypothesis(int64_t item, std::string_view open) {
  const MutexLock lock(mutex_);
  Turn& turn = turns_[item];
  turn.open = open;
  if (turn.is_shown) {
    console_.open(open);
  } else {
    show_first();
  }
}

void LiveTurns::on_completed(int64_t item, const LiveTranscript& transcript) {
  const MutexLock lock(mutex_);
  const Turn& turn = turns_[item];
  if (transcript.was_revised) {
    write_log(LogLevel::kInfo, str_cat("turn ", result_.num_turns + 1, ", heard again as a whole: ", transcript.text));
  }
  ++result_.num_turns;
  result_.num_words_told += transcript.num_words_told;
  result_.num_words_revised += transcript.num_words_revised;
  Transcript& whole = result_.transcript;
  const double start = static_cast<double>(turn.start_ms) / 1000;
  const double end = turn.end_ms >= 0 ? static_cast<double>(turn.end_ms) / 1000 : start + transcript.seconds;
  whole.duration = std::max(whole.duration, end);
  if (!transcript.language.empty()) whole.language = transcript.language;
  if (!transcript.text.empty()) {
    Segment segment;
    segment.id = static_cast<int32_t>(whole.segments.size());
    segment.start = start;
    segment.end = end;
    segment.text = " " + transcript.text;
    whole.text += segment.text;
    whole.segments.push_back(std::move(segment));
  }
  end_turn(item);
}

void LiveTurns::on_failed(int64_t item, const Status& error) {
  const MutexLock lock(mutex_);
  ++result_.num_failed;
  log_error("a turn at ", static_cast<double>(turns_[item].start_ms) / 1000, " s: ", error_message(error));
  end_turn(item);
}

void LiveTurns::on_finished() {
  const MutexLock lock(mutex_);
  if (!turns_.empty()) console_.end_line();  // of what was told and never committed
  turns_.clear();
  is_finished_ = true;
}

LiveTurns::Result LiveTurns::result() const {
  const MutexLock lock(mutex_);
  return result_;
}

void LiveTurns::bring(Transcript& transcript) const {
  const MutexLock lock(mutex_);
  const Transcript& whole = result_.transcript;
  const size_t num_there = transcript.segments.size();
  transcript.language = whole.language;
  transcript.duration = whole.duration;
  transcript.text += std::string_view(whole.text).substr(transcript.text.size());
  transcript.segments.insert(transcript.segments.end(), whole.segments.begin() + static_cast<std::ptrdiff_t>(num_there),
                             whole.segments.end());
}

size_t LiveTurns::num_segments() const {
  const MutexLock lock(mutex_);
  return result_.transcript.segments.size();
}

bool LiveTurns::is_finished() const {
  const MutexLock lock(mutex_);
  return is_finished_;
}

bool LiveTurns::is_written() const {
  const MutexLock lock(mutex_);
  return console_.is_ok();
}

// The turn whose line it is now.
void LiveTurns::show_first() {
  if (turns_.empty()) return;
  Turn& first = turns_.begin()->second;
  if (first.is_shown || (first.told.empty() && first.open.empty())) return;
  first.is_shown = true;
  if (!first.told.empty()) console_.confirmed(first.told);
  if (!first.open.empty()) console_.open(first.open);
}

// Items complete in order: those before it were dropped.
void LiveTurns::end_turn(int64_t item) {
  while (turns_.begin()->first < item) {
    if (turns_.begin()->second.is_shown) console_.end_line();
    turns_.erase(turns_.begin());
  }
  show_first();
  console_.end_line();
  turns_.erase(item);
  show_first();
}

}  // namespace transept

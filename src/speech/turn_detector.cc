#include "speech/turn_detector.h"

#include <algorithm>

namespace transept {
namespace {

constexpr int64_t kLeastSpeechFrames = 10;  // shorter speech is noise (SpeechSpanOptions)
constexpr double kEndBelow = 0.15;          // speech ends so far below the threshold (SpeechSpanOptions, Silero VAD)
constexpr double kLeastEndThreshold = 0.01;

}  // namespace

void TurnDetector::push(const FrameVoice& frame, std::vector<TurnEvent>& out) {
  if (start_.has_value()) {
    follow(frame, out);
  } else {
    listen(frame, out);
  }
  ++num_frames_;
  if (start_.has_value() && num_frames_ * kTurnFrameMs - *start_ >= kMaxTurnMs) cut_long(out);
}

// No turn is open.
void TurnDetector::listen(const FrameVoice& frame, std::vector<TurnEvent>& out) {
  const double probability = static_cast<double>(frame.probability);
  const double ends = std::max(options_.threshold - kEndBelow, kLeastEndThreshold);
  if (!speech_.has_value() && probability >= options_.threshold) speech_ = num_frames_;
  if (speech_.has_value() && probability < ends) speech_.reset();
  if (!speech_.has_value() || num_frames_ + 1 - *speech_ < kLeastSpeechFrames) return;
  start_ = std::max(last_end_, *speech_ * kTurnFrameMs - options_.prefix_padding_ms);
  speech_.reset();
  silence_.reset();
  is_paused_ = false;
  levels_.assign(1, frame.level);
  out.push_back({TurnEvent::Kind::kStarted, *start_});
}

void TurnDetector::follow(const FrameVoice& frame, std::vector<TurnEvent>& out) {
  if (std::ssize(levels_) * kTurnFrameMs >= kTurnCutMs) levels_.erase(levels_.begin());
  levels_.push_back(frame.level);
  const double probability = static_cast<double>(frame.probability);
  if (probability >= options_.threshold) {
    silence_.reset();
    if (is_paused_) out.push_back({TurnEvent::Kind::kResumed, num_frames_ * kTurnFrameMs});
    is_paused_ = false;
    return;
  }
  if (!silence_.has_value()) {
    if (probability >= std::max(options_.threshold - kEndBelow, kLeastEndThreshold)) return;
    silence_ = num_frames_;
  }
  const int64_t silent_ms = (num_frames_ + 1 - *silence_) * kTurnFrameMs;
  // A turn that began with a cut may have hardly begun.
  const int64_t end = std::max(*silence_ * kTurnFrameMs + end_padding(), *start_ + kMinCommitMs);
  if (end > (num_frames_ + 1) * kTurnFrameMs) return;
  if (silent_ms >= options_.silence_duration_ms) return stop(end, out);
  if (is_paused_ || silent_ms < kLiveEndPaddingMs) return;
  is_paused_ = true;
  out.push_back({TurnEvent::Kind::kPaused, end});
}

int64_t TurnDetector::end_padding() const { return std::min<int64_t>(kLiveEndPaddingMs, options_.silence_duration_ms); }

void TurnDetector::stop(int64_t ms, std::vector<TurnEvent>& out) {
  out.push_back({TurnEvent::Kind::kStopped, ms});
  last_end_ = ms;
  start_.reset();
  silence_.reset();
  is_paused_ = false;
}

// The turn is as long as a window. In a pause it is over; else the next begins at once.
void TurnDetector::cut_long(std::vector<TurnEvent>& out) {
  const int64_t now = num_frames_ * kTurnFrameMs;
  if (silence_.has_value()) return stop(std::min(*silence_ * kTurnFrameMs + end_padding(), *start_ + kMaxTurnMs), out);
  const auto quietest = std::ranges::min_element(levels_);
  const int64_t ms = now - (levels_.end() - quietest) * kTurnFrameMs;
  levels_.erase(levels_.begin(), quietest);
  stop(ms, out);
  start_ = ms;
  out.push_back({TurnEvent::Kind::kStarted, ms});
}

void TurnDetector::cut(int64_t ms, std::vector<TurnEvent>& out) {
  const bool goes_on = start_.has_value() && !silence_.has_value();
  last_end_ = ms;
  start_.reset();
  speech_.reset();
  silence_.reset();
  is_paused_ = false;
  levels_.clear();
  if (!goes_on) return;
  start_ = ms;
  out.push_back({TurnEvent::Kind::kStarted, ms});
}

int64_t TurnDetector::earliest_ms() const {
  if (start_.has_value()) return *start_;
  const int64_t speech = speech_.value_or(num_frames_) * kTurnFrameMs;
  return std::max<int64_t>({last_end_, speech - options_.prefix_padding_ms, 0});
}

}  // namespace transept

#include "speech/silent_windows.h"

#include <algorithm>
#include <cmath>

#include "speech/speech_spans.h"

namespace transept {
namespace {

// Digital silence: the floor of the log-mel stage, and what rounding makes of it.
constexpr float kFloorLevel = -9.99f;

int64_t frame_at(double seconds) { return std::llround(seconds * kVoiceFramesPerSecond); }

}  // namespace

SilentWindows::SilentWindows(std::span<const FrameVoice> voice) {
  for (const SpeechSpan& span : find_speech(voice)) speech_.push_back({frame_at(span.start), frame_at(span.end)});
  if (!speech_.empty() || std::ssize(voice) >= kTooShortToJudge) return;
  if (std::ranges::any_of(voice, [](const FrameVoice& frame) { return frame.level > kFloorLevel; })) {
    speech_.push_back({0, std::ssize(voice)});
  }
}

bool SilentWindows::is_silent(const FrameRange& window) const { return first_speech(window) >= window.end; }

int64_t SilentWindows::first_speech(const FrameRange& range) const {
  const auto next = std::ranges::upper_bound(speech_, range.begin, {}, &FrameRange::end);
  return next == speech_.end() ? range.end : std::clamp(next->begin, range.begin, range.end);
}

}  // namespace transept

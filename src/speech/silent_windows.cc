#include "speech/silent_windows.h"

#include <algorithm>
#include <cmath>

#include "speech/audio_windows.h"
#include "speech/speech_spans.h"

namespace transept {
namespace {

// Digital silence: the floor of the log-mel stage, and what rounding makes of it.
constexpr float kFloorLevel = -9.99f;

// Undoes LogMel::normalize: the first num_frames of [num_bins, columns] become [num_frames, num_bins].
std::vector<float> raw_frames(const EncoderFeatures& features, int64_t num_frames) {
  const int64_t num_bins = features.shape[0], columns = features.shape[1];
  std::vector<float> frames(static_cast<size_t>(num_frames * num_bins));
  for (int64_t bin = 0; bin < num_bins; ++bin) {
    for (int64_t t = 0; t < num_frames; ++t) {
      frames[static_cast<size_t>(t * num_bins + bin)] =
          features.values[static_cast<size_t>(bin * columns + t)] * 4.0f - 4.0f;
    }
  }
  return frames;
}

int64_t silent_frame_at(double seconds) { return std::llround(seconds * kVoiceFramesPerSecond); }

}  // namespace

SilentWindows::SilentWindows(std::span<const FrameVoice> voice) {
  for (const SpeechSpan& span : find_speech(voice))
    speech_.push_back({silent_frame_at(span.start), silent_frame_at(span.end)});
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

bool is_silent(const EncoderFeatures& features, const AudioProcessor& processor) {
  const LogMel* own_mel = processor.log_mel();
  if (own_mel != nullptr && own_mel->options().hop_length * kVoiceFramesPerSecond != own_mel->options().sampling_rate) {
    return false;
  }
  std::vector<float> frames;
  int32_t num_bins = 0;
  if (own_mel != nullptr) {
    num_bins = own_mel->options().num_mel_bins;
    const double num_frames =
        std::min(features.audio_seconds * kVoiceFramesPerSecond + 0.001, static_cast<double>(features.shape[1]));
    frames = raw_frames(features, static_cast<int64_t>(num_frames));
  } else {
    const StatusOr<LogMel> log_mel = voice_log_mel(processor);
    if (!log_mel.ok()) return false;
    num_bins = log_mel->options().num_mel_bins;
    LogMelStream stream(*log_mel);
    stream.push(features.values, frames);
    stream.finish(frames);
  }
  const std::vector<FrameVoice> voice = detect_voice(frames, num_bins);
  return SilentWindows(voice).is_silent({0, std::ssize(voice)});
}

}  // namespace transept

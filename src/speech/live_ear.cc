#include "speech/live_ear.h"

#include <algorithm>

#include "base/check.h"
#include "speech/audio_windows.h"
#include "speech/window_segments.h"

namespace transept {
namespace {

constexpr int64_t kDropAtOnce = 100;  // frames; vectors are moved so seldom

const LogMel& mel_of(const AudioProcessor& processor, const LogMel& voice_mel) {
  return processor.log_mel() != nullptr ? *processor.log_mel() : voice_mel;
}

}  // namespace

LiveEar::LiveEar(const AudioProcessor& processor, const LogMel& voice_mel, int32_t sampling_rate)
    : processor_(processor),
      resampler_(sampling_rate, processor.sampling_rate()),
      width_(frame_width(processor)),
      voice_width_(mel_of(processor, voice_mel).options().num_mel_bins),
      mel_(mel_of(processor, voice_mel)),
      detector_(static_cast<int>(voice_width_), VoiceMode::kCausal) {}

void LiveEar::push(std::span<const int16_t> samples, std::vector<FrameVoice>& decided) {
  floats_.resize(samples.size());
  std::ranges::transform(samples, floats_.begin(),
                         [](int16_t sample) { return static_cast<float>(sample) / 32768.0f; });
  resampled_.clear();
  resampler_.convert(floats_, resampled_);
  listen(resampled_, false, decided);
}

void LiveEar::finish(std::vector<FrameVoice>& decided) {
  resampled_.clear();
  resampler_.flush(resampled_);
  listen(resampled_, true, decided);
  detector_.finish(decided);
}

void LiveEar::listen(std::span<const float> samples, bool is_end, std::vector<FrameVoice>& decided) {
  voice_rows_.clear();
  mel_.push(samples, voice_rows_);
  if (is_end) mel_.finish(voice_rows_);
  const auto width = static_cast<size_t>(voice_width_);
  for (size_t at = 0; at + width <= voice_rows_.size(); at += width) {
    detector_.push(std::span(voice_rows_).subspan(at, width), decided);
  }
  const std::span<const float> kept = processor_.log_mel() != nullptr ? std::span<const float>(voice_rows_) : samples;
  rows_.insert(rows_.end(), kept.begin(), kept.end());
}

void LiveEar::forget(int64_t frame) {
  const int64_t count = std::min(frame, num_frames()) - first_frame_;
  if (count < kDropAtOnce) return;
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count * width_));
  first_frame_ += count;
}

std::shared_ptr<const EncoderFeatures> LiveEar::features(int64_t begin, int64_t end) const {
  CHECK(first_frame_ <= begin && begin < end && end <= num_frames() && end - begin <= kWindowFrames, "frames ", begin,
        " to ", end, " of ", first_frame_, " to ", num_frames());
  const std::span<const float> rows = std::span(rows_).subspan(static_cast<size_t>((begin - first_frame_) * width_),
                                                               static_cast<size_t>((end - begin) * width_));
  if (processor_.log_mel() == nullptr) return processor_.features(rows);
  return processor_.features_of_frames(rows, std::ranges::max(rows),
                                       static_cast<double>(end - begin) / kFramesPerSecond);
}

}  // namespace transept

// Where there is speech: for the batched mode, which cuts audio at pauses. A likelihood-ratio detector over mel bins
// after Sohn, Kim and Sung, "A statistical model-based voice activity detection" (IEEE SPL 6(1), 1999), with the noise
// of each bin from minima (after Martin, "Noise power spectral density estimation based on optimal smoothing and
// minimum statistics", 2001) on both sides of a frame. docs/decisions/0010 says why, and what was measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace transept {

// A frame is 0.01 s.
inline constexpr double kVoiceFramesPerSecond = 100;

struct FrameVoice {
  float probability = 0;  // that the frame is speech, in [0, 1]
  float level = 0;        // log10 of the frame's mean power over mel bins: where to cut if one must
};

// Streaming: 350 KB for 80 bins, however long the audio; looks 1.6 s ahead. Results do not depend on how frames come.
// Not thread-safe.
class VoiceActivityDetector final {
 public:
  // REQUIRES: num_bins in [1, 512].
  explicit VoiceActivityDetector(int num_bins);
  ~VoiceActivityDetector();
  VoiceActivityDetector(VoiceActivityDetector&&) noexcept;
  VoiceActivityDetector& operator=(VoiceActivityDetector&&) noexcept;

  // [num_bins] log10 of mel power as the log-mel stage computes it: floor 1e-10, before clamp and scaling. Values that
  // are no number, or outside [-10, 10], count as the nearest of these (no number: -10). Appends the frames that have
  // become certain.
  void push(std::span<const float> log10_mel, std::vector<FrameVoice>& out);
  // No frame will follow: appends the rest, so that there is one for every frame pushed.
  void finish(std::vector<FrameVoice>& out);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// All at once: frames [num_frames, num_bins].
std::vector<FrameVoice> detect_voice(std::span<const float> frames, int num_bins);

}  // namespace transept

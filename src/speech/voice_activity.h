// Detects speech, for batched mode (which cuts audio at pauses), skip_silence and live audio. A likelihood-ratio
// detector over mel bins after Sohn, Kim and Sung, "A statistical model-based voice activity detection" (IEEE SPL 6(1),
// 1999). The noise of each bin is estimated from minima on both sides of a frame, after Martin, "Noise power spectral
// density estimation based on optimal smoothing and minimum statistics", 2001. Reasons and measurements:
// docs/decisions/0010-voice-activity.md.
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
  float level = 0;        // log10 of its mean power over mel bins; long speech is cut where it is low
};

// What a decision waits for.
enum class VoiceMode : uint8_t {
  kBothSides,  // 1.55 s of audio behind a frame: noise is estimated from both sides of it
  // 0.08 s: noise is estimated from the audio before. Digital silence tells nothing about it. In the first 0.75 s of
  // sound, noise is what was heard before a gap, else at most what a quiet room has: so a word right at the beginning
  // is found. Loud noise that begins all at once is taken for speech until its level was steady for 0.5 s.
  kCausal,
};

// Streaming: 340 KB for 80 bins, whatever the length of the audio. Results do not depend on the sizes of pushes. Not
// thread-safe.
class VoiceActivityDetector final {
 public:
  // REQUIRES: num_bins in [1, 512].
  explicit VoiceActivityDetector(int num_bins, VoiceMode mode = VoiceMode::kBothSides);
  ~VoiceActivityDetector();
  VoiceActivityDetector(VoiceActivityDetector&&) noexcept;
  VoiceActivityDetector& operator=(VoiceActivityDetector&&) noexcept;

  // Takes one frame, [num_bins] log10 of mel power as LogMelStream gives it: floor 1e-10, before clamp and scaling.
  // Values outside [-10, 10] count as the nearest bound, NaN as -10. Appends the frames that are decided now. REQUIRES
  // (CHECK): the size.
  void push(std::span<const float> log10_mel, std::vector<FrameVoice>& out);
  // Ends the audio: appends the remaining frames, one for each push in all. Push nothing after it.
  void finish(std::vector<FrameVoice>& out);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Detects the voice of whole audio. `frames` is [num_frames, num_bins]; returns [num_frames].
std::vector<FrameVoice> detect_voice(std::span<const float> frames, int num_bins,
                                     VoiceMode mode = VoiceMode::kBothSides);

}  // namespace transept

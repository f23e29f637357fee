// Where somebody speaks: for the batched mode, which cuts audio at pauses. A likelihood-ratio detector over mel bins;
// docs/decisions says which, and what was measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace transept {

// A frame is 0.01 s.
inline constexpr double kVoiceFrameSeconds = 0.01;

struct FrameVoice {
  float probability = 0;  // that the frame is speech, in [0, 1]
  float level = 0;        // log10 of the frame's mean power over mel bins: where to cut if one must
};

// Streaming, with constant memory. Not thread-safe.
class VoiceActivityDetector final {
 public:
  // REQUIRES: num_bins in [1, 512].
  explicit VoiceActivityDetector(int num_bins);
  ~VoiceActivityDetector();
  VoiceActivityDetector(VoiceActivityDetector&&) noexcept;
  VoiceActivityDetector& operator=(VoiceActivityDetector&&) noexcept;

  // [num_bins] log10 of mel power as the log-mel stage computes it: floor 1e-10, before clamp and scaling. Values that
  // are no number, or outside [-10, 10], count as the nearest of these (no number: -10).
  FrameVoice push(std::span<const float> log10_mel);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Seconds.
struct SpeechSpan {
  double start = 0, end = 0;
  bool operator==(const SpeechSpan&) const = default;
};

struct SpeechSpanOptions {
  double threshold = 0.5;            // probability at which speech begins
  double end_threshold = 0.35;       // and below which it ends
  double min_speech_seconds = 0.15;  // shorter ones are noise
  double min_silence_seconds = 0.3;  // shorter pauses are part of speech
  double padding_seconds = 0.2;      // added on both sides
};

// Ascending, apart from each other, within the frames.
std::vector<SpeechSpan> find_speech(std::span<const FrameVoice> frames, const SpeechSpanOptions& options);

// Windows of at most max_window_seconds that hold all speech: neighbours are joined while they fit, and longer speech
// is cut at its quietest frame in the last third of a window. Ascending; windows do not overlap. REQUIRES:
// max_window_seconds >= 1; spans as find_speech gives them.
std::vector<SpeechSpan> cut_windows(std::span<const SpeechSpan> spans, std::span<const FrameVoice> frames,
                                    double max_window_seconds = 30);

}  // namespace transept

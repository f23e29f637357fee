// Frames' voice into spans of speech, and spans into windows for the encoder. Pure functions: thread-safe.
#pragma once

#include <span>
#include <vector>

#include "speech/voice_activity.h"

namespace transept {

// Seconds.
struct SpeechSpan {
  double start = 0, end = 0;
  bool operator==(const SpeechSpan&) const = default;
};

struct SpeechSpanOptions {
  double threshold = 0.5;            // probability at which speech begins
  double end_threshold = 0.35;       // and below which it ends
  double min_speech_seconds = 0.1;   // shorter ones are noise
  double min_silence_seconds = 0.3;  // shorter pauses are part of speech
  double padding_seconds = 0.2;      // added on both sides
};

// Ascending, apart from each other, within the frames.
std::vector<SpeechSpan> find_speech(std::span<const FrameVoice> frames,
                                    const SpeechSpanOptions& options = SpeechSpanOptions());

struct WindowCutOptions {
  double max_window_seconds = 30;  // at least 1
  double max_pause_seconds = 3;    // longer pauses always part windows
};

// Windows that hold all speech: neighbours are joined while they fit, and longer speech is cut at its quietest moment
// in the last third of a window. Ascending; windows do not overlap. REQUIRES: spans as find_speech gives them.
std::vector<SpeechSpan> cut_windows(std::span<const SpeechSpan> spans, std::span<const FrameVoice> frames,
                                    const WindowCutOptions& options = WindowCutOptions());

}  // namespace transept

// Joins voiced frames to spans of speech, and cuts spans into windows for the encoder. Pure functions: thread-safe.
#pragma once

#include <span>
#include <vector>

#include "speech/voice_activity.h"

namespace transept {

// Seconds from the first frame.
struct SpeechSpan {
  double start = 0, end = 0;
  bool operator==(const SpeechSpan&) const = default;
};

struct SpeechSpanOptions {
  double threshold = 0.5;            // speech begins at this probability
  double end_threshold = 0.35;       // and ends below this one
  double min_speech_seconds = 0.1;   // shorter speech is noise
  double min_silence_seconds = 0.3;  // shorter pauses are speech, as are those that the padding fills
  double padding_seconds = 0.2;      // added on both sides
};

// Returns the spans of speech, ascending, disjoint, within the frames.
std::vector<SpeechSpan> find_speech(std::span<const FrameVoice> frames,
                                    const SpeechSpanOptions& options = SpeechSpanOptions());

struct WindowCutOptions {
  double max_window_seconds = 30;  // less than 1 counts as 1
  double max_pause_seconds = 3;    // longer pauses always separate windows
};

// Returns windows that cover all speech, ascending and without overlap. Joins neighbouring spans while they fit in a
// window; cuts longer speech at its quietest frame in the last third of a window. REQUIRES: `spans` are find_speech's
// of `frames`.
std::vector<SpeechSpan> cut_windows(std::span<const SpeechSpan> spans, std::span<const FrameVoice> frames,
                                    const WindowCutOptions& options = WindowCutOptions());

}  // namespace transept

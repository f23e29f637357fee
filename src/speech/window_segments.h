// The tokens of one window into segments, and where the next window begins. Source: openai-whisper, transcribe.py.
// Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speech/transcript.h"

namespace transept {

inline constexpr double kFramesPerSecond = 100;
inline constexpr int64_t kWindowFrames = 3000;

struct WindowTokens {
  std::span<const int32_t> tokens;  // what was generated, without <|endoftext|>
  int64_t seek = 0;                 // frame at which the window begins
  int64_t segment_size = 0;         // frames of it that hold audio
  int32_t timestamp_begin = 0;      // <|0.00|>; ids from here on are timestamps
  int64_t input_stride = 2;         // frames a timestamp step: 0.02 s
};

struct WindowSegments {
  std::vector<Segment> segments = {};    // seek, start, end and tokens are set; none without tokens
  int64_t next_seek = 0;                 // > seek
  bool single_timestamp_ending = false;  // there is no speech after the last timestamp
};

// Cuts between consecutive timestamps. What comes after the last pair is unfinished: the next window begins there,
// unless the tokens end with a single timestamp. Without a pair all is one segment. Timestamps beyond 30 s count as 30
// s. Where the reference would stay in place for ever (a last timestamp of 0), the window is passed over.
WindowSegments window_segments(const WindowTokens& window);

// What follows once texts and words are in.

// The end of the last word, else of the last segment; 0 segments: `otherwise`.
double last_end(std::span<const Segment> segments, double otherwise);
// The first that has words, or null.
const Segment* next_words_segment(std::span<const Segment> segments);

// Words that are very long, very short or improbable. Source: transcribe.py, word_anomaly_score, is_segment_anomaly.
double word_anomaly_score(const Word& word);
bool is_segment_anomaly(const Segment* segment);  // null: no

struct WindowPlace {
  int64_t seek = 0, segment_size = 0;
  int64_t content_frames = 0;  // of the whole audio
};

// What word times change in a window's end.
struct WindowWords {
  // In: what window_segments said, with words. Out: without what is taken for a hallucination beside silence.
  WindowSegments window;
  double last_speech_timestamp = 0;  // In and out.
  bool skipped = false;              // out: the window gives nothing; segments is empty
};

// The next window begins where the last word ends (unless single_timestamp_ending); with a threshold in seconds,
// suspicious segments that stand in silence longer than it are dropped, or the silence before them is skipped.
// next_seek stays > seek. REQUIRES: the segments have had their words added.
void settle_words(const WindowPlace& place, const double* hallucination_silence_threshold, WindowWords& words);

// Segments without duration or text lose text, tokens and words (but stay). REQUIRES: texts are set.
void clear_empty_segments(std::span<Segment> segments);

}  // namespace transept

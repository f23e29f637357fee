// Cuts the tokens of one window into segments, and finds the beginning of the next window. Source: openai-whisper,
// transcribe.py. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speech/transcript.h"

namespace transept {

// A frame is 0.01 s, a window 30 s.
inline constexpr double kFramesPerSecond = 100;
inline constexpr int64_t kWindowFrames = 3000;

struct WindowTokens {
  std::span<const int32_t> tokens;       // generated tokens, without <|endoftext|>
  std::span<const float> logprobs = {};  // of the tokens, each; or none
  int64_t seek = 0;                      // frame at which the window begins
  int64_t segment_size = 0;              // frames of the window that hold audio
  int32_t timestamp_begin = 0;           // <|0.00|>; ids from here on are timestamps
  int64_t input_stride = 2;              // frames per timestamp step of 0.02 s
};

struct WindowSegments {
  std::vector<Segment> segments = {};    // with seek, start, end, tokens; none without tokens
  int64_t next_seek = 0;                 // > seek
  bool single_timestamp_ending = false;  // no speech follows the last timestamp
};

// Cuts between consecutive timestamps. Tokens after the last pair are unfinished: the next window begins there, unless
// the tokens end with a single timestamp. Without a pair all tokens are one segment. Timestamps beyond 30 s count as 30
// s. Moves to the next window where the reference would not advance (a last timestamp of 0).
WindowSegments window_segments(const WindowTokens& window);

// The functions below take segments with texts and words.

// Returns the end of the last word, else of the last segment; `otherwise` without segments.
double last_end(std::span<const Segment> segments, double otherwise);
// Returns the first segment with words, or null.
const Segment* next_words_segment(std::span<const Segment> segments);

// High for words that are very long, very short or improbable. A segment is an anomaly if its first eight words,
// without punctuation, score 3 or about 1 each. Source: transcribe.py, word_anomaly_score, is_segment_anomaly.
double word_anomaly_score(const Word& word);
bool is_segment_anomaly(const Segment* segment);  // null: false

// Frames.
struct WindowPlace {
  int64_t seek = 0, segment_size = 0;
  int64_t content_frames = 0;  // of the whole audio
};

// The input and output of settle_words.
struct WindowWords {
  // In: window_segments' result, with words. Out: without segments that look like hallucinations in silence.
  WindowSegments window;
  double last_speech_timestamp = 0;  // in and out, seconds
  bool skipped = false;              // out: the window has no segments, and next_seek skips the silence in it
};

// Moves next_seek to the end of the last word (unless single_timestamp_ending). With a threshold in seconds (null:
// none), also drops suspicious segments that stand in longer silence, or skips such a silence before them. next_seek
// stays > seek. REQUIRES: add_word_times has added the words.
void settle_words(const WindowPlace& place, const double* hallucination_silence_threshold, WindowWords& words);

// Clears text, tokens and words of segments without duration or text; keeps the segments. REQUIRES: texts are set.
void clear_empty_segments(std::span<Segment> segments);

}  // namespace transept

// Lays words out as subtitles, with line breaks by the user's limits. Source: openai-whisper, utils.py,
// SubtitlesWriter. A pure function: thread-safe.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "speech/transcript.h"

namespace transept {

// The layout of words in vtt and srt. Needs word times; without them each segment is a subtitle.
struct SubtitleOptions {
  int64_t max_line_width = 0;      // characters; 0: 1000, the reference's
  int64_t max_line_count = 0;      // per subtitle; 0: no limit; no effect without max_line_width
  int64_t max_words_per_line = 0;  // 0: 1000, the reference's
  bool highlight_words = false;    // one cue per word, with the word underlined
};

// Times in seconds.
struct Cue {
  double start = 0, end = 0;
  std::string text = {};
};

// Calls `visit` with every cue of the words, in order. Words keep "-->", unlike texts of segments: so does the
// reference. Invalid UTF-8 becomes U+FFFD.
void for_each_word_cue(std::span<const Segment> segments, const SubtitleOptions& options,
                       FunctionRef<void(const Cue&)> visit);

}  // namespace transept

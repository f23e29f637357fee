// Words into subtitles: lines and breaks by the user's limits, as openai-whisper's SubtitlesWriter does. Pure:
// thread-safe.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "speech/transcript.h"

namespace transept {

// How vtt and srt cut words into subtitles. They need word times; without these a subtitle is a segment.
struct SubtitleOptions {
  int64_t max_line_width = 0;      // characters; 0: no limit
  int64_t max_line_count = 0;      // lines of a subtitle; 0: no limit. Counts only beside max_line_width
  int64_t max_words_per_line = 0;  // 0: no limit
  bool highlight_words = false;    // one subtitle a word, which is underlined
};

struct Cue {
  double start = 0, end = 0;
  std::string text = {};
};

// In order. Unlike texts of segments, words keep "-->" (so does the reference).
void for_each_word_cue(std::span<const Segment> segments, const SubtitleOptions& options,
                       FunctionRef<void(const Cue&)> visit);

}  // namespace transept

// Words into subtitles: lines and breaks by the user's limits, as openai-whisper's SubtitlesWriter does. Pure:
// thread-safe.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "speech/subtitles.h"

namespace transept {

struct Cue {
  double start = 0, end = 0;
  std::string text = {};
};

// In order. Unlike texts of segments, words keep "-->" (so does the reference).
void for_each_word_cue(std::span<const Segment> segments, const SubtitleOptions& options,
                       FunctionRef<void(const Cue&)> visit);

}  // namespace transept

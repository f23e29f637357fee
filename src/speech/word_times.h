// Assigns the words of a window to its segments, with the reference's corrections of times. Source: openai-whisper,
// timing.py, merge_punctuations and add_word_timestamps. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "speech/transcript.h"
#include "speech/word_alignment.h"

namespace transept {

inline constexpr std::string_view kPrependPunctuations = "\"'“¿([{-";
inline constexpr std::string_view kAppendPunctuations = "\"'.。,，!！?？:：”)]}、";

struct WordTimesOptions {
  std::string prepend_punctuations = std::string(kPrependPunctuations);  // joined to the next word
  std::string append_punctuations = std::string(kAppendPunctuations);    // joined to the previous word
  int32_t end_of_text = 0;                                               // tokens below it are text
  double last_speech_timestamp = 0;  // end of the last word of earlier windows, seconds
};

// Merges punctuation into neighbouring words; a merged entry stays, without text and tokens.
void merge_punctuations(std::vector<WordTiming>& alignment, std::string_view prepended, std::string_view appended);

// Sets the words of every segment of one window, and moves the starts and ends of segments to them. `alignment` covers
// the text tokens of all segments, in order. Rounds word times to 0.01 s before the corrections. REQUIRES: segments
// with seek, start, end, tokens.
void add_word_times(std::vector<WordTiming> alignment, const WordTimesOptions& options, std::span<Segment> segments);

}  // namespace transept

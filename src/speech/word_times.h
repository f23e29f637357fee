// Words of a window into its segments, with the reference's repairs of times. Source: openai-whisper, timing.py,
// merge_punctuations and add_word_timestamps. Pure functions: thread-safe.
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
  std::string prepend_punctuations = std::string(kPrependPunctuations);  // go to the next word
  std::string append_punctuations = std::string(kAppendPunctuations);    // go to the previous word
  int32_t end_of_text = 0;                                               // tokens below it are text
  double last_speech_timestamp = 0;                                      // when the last word of earlier windows ended
};

// A word that was merged into its neighbour is left without text and tokens.
void merge_punctuations(std::vector<WordTiming>& alignment, std::string_view prepended, std::string_view appended);

// Gives every segment of one window its words, and moves starts and ends of segments to them. `alignment` is that of
// the segments' text tokens, one segment after the other.
void add_word_times(std::vector<WordTiming> alignment, const WordTimesOptions& options, std::span<Segment> segments);

}  // namespace transept

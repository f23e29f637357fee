// What speech recognition gives: text, segments, words. Values; times are seconds from the beginning of the audio.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace transept {

struct Word {
  std::string word;  // with its leading space, where the language has them
  double start = 0, end = 0;
  double probability = 0;  // mean over its tokens
};

struct Segment {
  int32_t id = 0;
  int64_t seek = 0;  // the frame (of 0.01 s) at which the segment's window begins
  double start = 0, end = 0;
  std::string text;
  std::vector<int32_t> tokens;                                                         // timestamps included
  double temperature = 0, avg_logprob = 0, compression_ratio = 0, no_speech_prob = 0;  // of the segment's window
  std::vector<Word> words = {};
};

struct Transcript {
  std::string text;
  std::string language;  // a code: "en"
  std::vector<Segment> segments = {};
  double duration = 0;     // of the audio
  bool has_words = false;  // word times were asked for
};

}  // namespace transept

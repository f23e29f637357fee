// The result of speech recognition: text, segments, words. Values. Times are seconds from the beginning of the audio.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace transept {

struct Word {
  std::string word;  // with its leading space, if the language writes them
  double start = 0, end = 0;
  double probability = 0;  // mean over its tokens
};

struct Segment {
  int32_t id = 0;
  int64_t seek = 0;  // frame (of 0.01 s) at which its window begins
  double start = 0, end = 0;
  std::string text;
  std::vector<int32_t> tokens;                                                         // timestamps included
  double temperature = 0, avg_logprob = 0, compression_ratio = 0, no_speech_prob = 0;  // of its window
  std::vector<Word> words = {};
  std::vector<float> token_logprobs = {};  // of tokens, each; empty unless they were asked for
};

struct Transcript {
  std::string text;
  std::string language;  // a code ("en"); "": not detected, for lack of speech
  std::vector<Segment> segments = {};
  double duration = 0;     // of the audio
  bool has_words = false;  // word times were requested
};

}  // namespace transept

// What a transcription may be told: openai-whisper's options (transcribe.py, decoding.py) with its defaults, and how
// long audio is cut. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "speech/decoding_rules.h"
#include "speech/word_times.h"

namespace transept {

// How long audio is cut into windows.
enum class TranscribeMode : uint8_t {
  kSequential,  // one after the other, each from the last timestamp of the one before and with its text in mind
  kBatched,     // at pauses, by voice activity; the windows run through the engine together
};

struct TranscribeOptions {
  std::string language;  // code or English name; "": detected from the first window
  // Audio below 30 s: a language as probable as this by its one window's own encode is taken, and else the language is
  // told as the reference does, by an encode more of the audio with silence behind it (docs/transcribe.md).
  double sure_language = 0.9;
  std::string task = "transcribe";  // or "translate"

  double temperature = 0;
  std::optional<double> temperature_increment = 0.2;  // none: no fallback
  std::optional<int32_t> beam_size;      // at temperature 0; 1: greedy; none: 5, or 1 without transcript tokens
  int32_t best_of = 5;                   // above it
  std::optional<double> patience;        // of beams; none: 1
  std::optional<double> length_penalty;  // none: answers are ranked by their mean log-probability
  std::optional<std::vector<int32_t>> suppress_tokens;  // -1 stands for the model's list; none: that list
  DecodingThresholds thresholds;
  uint64_t seed = 0;

  bool condition_on_previous_text = true;  // sequential mode
  std::string initial_prompt;              // text before the first window
  bool carry_initial_prompt = false;       // before every window
  std::string hotwords;                    // text before the previous text of every window (faster-whisper's)
  std::string prefix;                      // text before the answer of the first window, and no part of it
  bool without_timestamps = false;         // a window is one segment

  bool word_timestamps = false;
  std::string prepend_punctuations = std::string(kPrependPunctuations);
  std::string append_punctuations = std::string(kAppendPunctuations);
  std::optional<double> hallucination_silence_threshold;  // seconds; needs word_timestamps

  std::string clip_timestamps = "0";  // "start,end,start,end,...", seconds; the last end may be missing
  double max_audio_seconds = 4 * 60 * 60;

  // None: sequential where the model has timestamps, else batched.
  std::optional<TranscribeMode> mode;
  int32_t batch_size = 8;  // windows of one file at a time, in batched mode
  // Windows in which the detector of voice finds no speech are not encoded, and give no text (silent_windows.h);
  // openai-whisper encodes all. Where no window is left, and no language was given, none is told.
  bool skip_silence = false;
};

// Everything that can be judged without a model. Errors, under the option's name (param): a value out of range, an
// option without the one that it needs.
Status check_transcribe_options(const TranscribeOptions& options);

}  // namespace transept

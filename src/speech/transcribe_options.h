// The options of a transcription: openai-whisper's (transcribe.py, decoding.py) with its defaults, and the way to cut
// long audio. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "speech/decoding_rules.h"
#include "speech/word_times.h"

namespace transept {

// The way to cut long audio into windows.
enum class TranscribeMode : uint8_t {
  kSequential,  // one after another, each from the last timestamp of the one before and conditioned on its text
  kBatched,     // at pauses, by voice activity; batch_size windows run concurrently
};

// Whose choices are made where the two differ.
enum class SpeechReference {
  kOpenaiWhisper,  // the language is told by the first 30 s, silence after shorter audio included
  // The language is told by 30 s from the first clip's begin; one frame of silence follows the audio, and then zeros.
  // Audio without speech has the language of silence. Beams end by their rank (SamplingParams::patience_ends_by_rank).
  // In sequential mode a prefix stands at 0 s alone. hotwords and prefix are cut where they leave no room.
  kFasterWhisper,
};

struct TranscribeOptions {
  std::string language;                // code or English name; "": the model's default or only one, else detected
  std::vector<std::string> languages;  // detection chooses among these alone; empty: among the model's
  // Detection of the language, for audio below 30 s: the encode of its one window decides if its best guess is at least
  // this probable. Otherwise an additional encode decides, of what tells the reference (docs/transcribe.md).
  double sure_language = 0.9;
  SpeechReference reference = SpeechReference::kOpenaiWhisper;
  std::string task = "transcribe";  // or "translate"

  double temperature = 0;
  std::optional<double> temperature_increment = 0.2;  // nullopt: no fallback
  std::optional<int32_t> beam_size;      // at temperature 0; 1: greedy; nullopt: 5, or 1 without transcript tokens
  int32_t best_of = 5;                   // above temperature 0
  std::optional<double> patience;        // of beam search; nullopt: 1
  std::optional<double> length_penalty;  // nullopt: ranks answers by their mean log-probability
  std::optional<std::vector<int32_t>> suppress_tokens;  // -1: the model's list; nullopt: {-1}; {}: bans nothing
  DecodingThresholds thresholds;
  uint64_t seed = 0;

  bool condition_on_previous_text = true;  // in sequential mode
  std::string initial_prompt;              // before the first window; in batched mode before each
  bool carry_initial_prompt = false;       // before every window
  std::string hotwords;                    // text before the previous text of every window (as in faster-whisper)
  std::string prefix;                      // text that the first window's transcript begins with
  bool without_timestamps = false;         // a window is one segment

  bool word_timestamps = false;
  std::string prepend_punctuations = std::string(kPrependPunctuations);
  std::string append_punctuations = std::string(kAppendPunctuations);
  std::optional<double> hallucination_silence_threshold;  // seconds; needs word_timestamps

  bool token_logprobs = false;  // Segment::token_logprobs; changes no answer

  std::string clip_timestamps = "0";       // parse_clip_timestamps
  double max_audio_seconds = 4 * 60 * 60;  // longer audio is an error

  // nullopt: sequential if the model has timestamps, else batched.
  std::optional<TranscribeMode> mode;
  int32_t batch_size = 8;  // concurrent windows of one file, in batched mode
  // Does not encode windows in which the voice detector finds no speech; they have no text (silent_windows.h).
  // openai-whisper encodes all windows. If no clip has speech and no language is given, the language stays "".
  bool skip_silence = false;
  // Windows share nothing with those of transcriptions of another salt (EncoderDecoderInputs::cache_salt).
  std::string cache_salt;
  // In sequential mode: lays what is spoken end to end and decodes that alone (spoken_audio.h), as in faster-whisper.
  // Batched mode decodes nothing else anyway.
  bool vad_filter = false;
};

// Checks the options as far as possible without a model. Errors: kInvalidArgument with the option as param: a value out
// of range, or an option without the one that it needs.
Status check_transcribe_options(const TranscribeOptions& options);

}  // namespace transept

// Inputs and measurements of a transcription: the model, the audio, the limits, counts and times. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "async/async_engine.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/speech_tokens.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "prompts/prompt_processor.h"
#include "startup/load_engine.h"
#include "text/tokenizer.h"

namespace transept {

// The parts of a loaded model that a transcription needs. Borrowed, all of them.
struct SpeechModel {
  AsyncEngine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const AudioProcessor* audio = nullptr;
  const SpeechTokens* tokens = nullptr;  // null: a model without transcript tokens
  const GenerationConfig* generation = nullptr;
  const PromptProcessor* prompts = nullptr;
  bool has_alignment_heads = false;
  int32_t max_num_seqs = 0;  // the engine's limit of the beams or samples of a window

  // Returns the parts of `model`, which `engine` runs. Errors: kUnimplemented if the model takes no audio;
  // kInvalidArgument if it has no tokenizer.
  static StatusOr<SpeechModel> of(const LoadedModel& model, AsyncEngine& engine);
};

// Audio that can be read repeatedly: encoded bytes, or raw samples. Copies share it. Immutable, so thread-safe.
class AudioSource final {
 public:
  AudioSource(AudioBytes bytes) : bytes_(std::move(bytes)) {}               // NOLINT: a source is a source
  AudioSource(AudioSamples samples) : samples_(std::move(samples)) {}       // NOLINT
  AudioSource(RawAudio raw) : AudioSource(AudioSamples(std::move(raw))) {}  // NOLINT

  // Returns a reader at the beginning. Errors: as AudioReader::open and AudioReader::from_samples.
  StatusOr<std::unique_ptr<AudioReader>> open(const AudioReader::Options& options) const;

 private:
  AudioBytes bytes_;
  std::optional<AudioSamples> samples_;  // unset: bytes_
};

// `probability` is among the model's languages.
struct LanguageGuess {
  std::string code;
  double probability = 0;
};

// Limits that end a transcription early. It checks them before each piece of 16,000 samples of audio and each request;
// a stop aborts the running request, and the deadline is the request's too, so both take effect after the engine's
// current step.
struct TranscribeLimits {
  std::stop_token stop_token = {};                 // kCancelled
  std::optional<TimePoint> deadline = {};          // by the engine's clock; kDeadlineExceeded
  std::shared_ptr<const TraceContext> trace = {};  // RequestSpec::trace of its requests; no limit
  // Its first request, too, continues work that was accepted (RequestSpec::is_continuation): a full queue refuses none.
  bool is_admitted = false;
  int32_t priority = 0;  // RequestSpec::priority of its requests; no limit

  // Returns the error of the limit that was reached, the stop's first; else ok.
  Status check(const Clock& clock) const;
};

struct TranscribeCounts {
  int64_t num_windows = 0;    // encodes; one more if detecting the language needed its own
  int64_t num_requests = 0;   // to the engine, for languages, fallbacks and alignments too
  int64_t num_fallbacks = 0;  // repeated decodings at a higher temperature
  // Of the accepted answers, one per window: tokens of the decoder prompt, and generated tokens with their end tokens.
  // Excludes fallbacks, language detection and alignments.
  int64_t num_prompt_tokens = 0, num_generated_tokens = 0;
  int64_t num_encoder_tokens = 0;  // encoder positions of the windows

  TranscribeCounts& operator+=(const TranscribeCounts& other);
};

struct TranscribeTimes {
  double queue_s = -1;                   // of the first answered request: its wait for its first step; negative: none
  std::optional<TimePoint> first_token;  // of the first answer that was complete, by the engine's clock
  // Intervals between tokens of an answer, fallbacks included, and their sum.
  int64_t num_intervals = 0;
  double interval_seconds = 0;
};

}  // namespace transept

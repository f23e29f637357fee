// What a transcription is made of and from: the model, the audio, what ends it before it is done, and what it counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/speech_tokens.h"
#include "engine/async_engine.h"
#include "engine/config.h"
#include "engine/prompt_processor.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "text/tokenizer.h"

namespace transept {

// What a transcription needs of a loaded model; all borrowed.
struct SpeechModel {
  AsyncEngine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const AudioProcessor* audio = nullptr;
  const SpeechTokens* tokens = nullptr;  // null: a model without transcript tokens
  const GenerationConfig* generation = nullptr;
  const PromptProcessor* prompts = nullptr;
  bool has_alignment_heads = false;
  int32_t max_num_seqs = 0;  // of the engine: beams and samples of a window

  // Of a loaded model whose engine `engine` has taken. Errors: it takes no audio; it has no tokenizer (why).
  static StatusOr<SpeechModel> of(const LoadedModel& model, AsyncEngine& engine);
};

// Audio that can be read more than once: encoded bytes, or raw samples.
class AudioSource final {
 public:
  AudioSource(AudioBytes bytes) : bytes_(std::move(bytes)) {}                            // NOLINT: a source is a source
  AudioSource(RawAudio raw) : raw_(std::make_shared<const RawAudio>(std::move(raw))) {}  // NOLINT

  StatusOr<std::unique_ptr<AudioReader>> open(const AudioReader::Options& options) const;

 private:
  AudioBytes bytes_;
  std::shared_ptr<const RawAudio> raw_;
};

struct LanguageGuess {
  std::string code;
  double probability = 0;
};

// What ends a transcription before it is done, in its first pass over the audio (within a piece of a second) and in its
// windows, whose requests are aborted: after the engine's step that runs then.
struct TranscribeLimits {
  std::stop_token stop_token = {};         // a request to stop: kCancelled
  std::optional<TimePoint> deadline = {};  // of the engine's clock: kDeadlineExceeded

  // The error of what has come to pass; of both, the stop.
  Status check(const Clock& clock) const;
};

struct TranscribeCounts {
  int64_t num_windows = 0;    // encoded, each once; one of its own for the language where no window told it
  int64_t num_requests = 0;   // of the engine: with language, fallbacks and alignments
  int64_t num_fallbacks = 0;  // windows decoded again at a higher temperature, each time counted
  // Of the answers that were taken, one a window: what the decoder was given before them, and what it gave (end tokens
  // included). Fallbacks, the language and alignments are not among them.
  int64_t num_prompt_tokens = 0, num_generated_tokens = 0;
  int64_t num_encoder_tokens = 0;  // positions of the windows

  TranscribeCounts& operator+=(const TranscribeCounts& other);
};

struct TranscribeTimes {
  double queue_s = -1;                   // its first engine request's wait for its first step; negative: there was none
  std::optional<TimePoint> first_token;  // of the first window's answer; of the engine's clock
  // Steps from a token of an answer to the next, fallbacks included, and the seconds of all of them.
  int64_t num_intervals = 0;
  double interval_seconds = 0;
};

}  // namespace transept

// Audio of any length to a transcript, over the engine's public interface: what the command line, the server and a
// library user call. Long audio by the algorithm of openai-whisper (transcribe.py), window after window, or batched:
// cut at pauses, all windows at once. Every window is encoded once; fallback, language detection and word alignment run
// over that encode.
//
// Models without transcript tokens (Moonshine) are cut at pauses too; each window is a segment, and its times are the
// pauses'.
//
// Thread-safe: any number of calls may run at once; what they ask of the engine runs in its one batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/speech_tokens.h"
#include "engine/async_engine.h"
#include "engine/config.h"
#include "engine/prompt_processor.h"
#include "media/audio_reader.h"
#include "multimodal/audio_processor.h"
#include "speech/transcribe_options.h"
#include "speech/transcript.h"
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

// Told while a transcription runs, on whatever thread that is, one call at a time. All may be left empty.
struct TranscribeObserver {
  // Seconds of audio, as the first pass over it has found them; once, before anything else but a warning.
  std::function<void(double seconds)> on_duration = {};
  // Most probable first, all of them; not called where the language was given or there is no choice.
  std::function<void(const std::vector<LanguageGuess>&)> on_language = {};
  std::function<void(const Segment&)> on_segment = {};  // in order, as they are decided
  // Seconds of audio done, of all.
  std::function<void(double done, double all)> on_progress = {};
  std::function<void(const std::string&)> on_warning = {};
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

struct TranscribeResult {
  Transcript transcript;
  TranscribeMode mode = TranscribeMode::kSequential;  // that ran
  TranscribeCounts counts;
  TranscribeTimes times;
};

class Transcriber final {
 public:
  explicit Transcriber(const SpeechModel& model) : model_(model) {}

  // Errors: check_transcribe_options'; an option that the model cannot serve (a language or task that it does not know,
  // word times without alignment heads, timestamps that it has not); what the audio has wrong; too long (both lengths);
  // the engine's (a full queue refuses a transcription with its first request, and none of its later ones); those of
  // the limits.
  StatusOr<TranscribeResult> transcribe(const AudioSource& audio, const TranscribeOptions& options,
                                        const TranscribeObserver& observer = {},
                                        const TranscribeLimits& limits = {}) const;

 private:
  SpeechModel model_;
};

}  // namespace transept

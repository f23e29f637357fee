// Transcribes audio of any length, over the engine's public interface, for the command line, the server and users of
// the library. Long audio runs by openai-whisper's algorithm (transcribe.py), window after window, or batched: cut at
// pauses, with batch_size windows concurrently. Each window is encoded once; fallback, language detection and word
// alignment reuse that encode (short audio may need one more for its language: sure_language).
//
// Models without transcript tokens (Moonshine) run batched: each window is one segment, from pause to pause.
//
// Thread-safe: any number of calls may run concurrently; their requests share the engine's batch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "speech/transcribe_options.h"
#include "speech/transcript.h"
#include "speech/transcription.h"

namespace transept {

// Callbacks of a running transcription, from any of its threads, one at a time. All are optional. They must not throw.
struct TranscribeObserver {
  // The length of the audio, from the first pass. Called once, before everything but warnings.
  std::function<void(double seconds)> on_duration = {};
  // All guesses, most probable first. Called once, if the language is detected.
  std::function<void(const std::vector<LanguageGuess>&)> on_language = {};
  std::function<void(const Segment&)> on_segment = {};  // in order, once final
  // Seconds of audio that are done, and of all audio.
  std::function<void(double done, double all)> on_progress = {};
  std::function<void(const std::string&)> on_warning = {};
};

struct TranscribeResult {
  Transcript transcript;
  TranscribeMode mode = TranscribeMode::kSequential;  // the mode that ran
  TranscribeCounts counts;
  TranscribeTimes times;
};

class Transcriber final {
 public:
  // Copies the struct; the parts of the model that it points to must outlive this.
  explicit Transcriber(const SpeechModel& model) : model_(model) {}

  // Blocks until the transcript is complete. In batched mode it starts up to batch_size threads. Errors:
  // check_transcribe_options'; kInvalidArgument with the option as param, if the model or the engine cannot serve it
  // (an unknown language or task, word times without alignment heads, missing timestamps, too many beams);
  // AudioReader's, for audio that cannot be read or longer than max_audio_seconds; AudioWindows'; the engine's (a full
  // queue refuses a transcription with its first request, never a later one); kCancelled and kDeadlineExceeded of
  // `limits`.
  StatusOr<TranscribeResult> transcribe(const AudioSource& audio, const TranscribeOptions& options,
                                        const TranscribeObserver& observer = {},
                                        const TranscribeLimits& limits = {}) const;

 private:
  SpeechModel model_;
};

}  // namespace transept

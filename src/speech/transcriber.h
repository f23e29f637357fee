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

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "speech/transcribe_options.h"
#include "speech/transcript.h"
#include "speech/transcription.h"

namespace transept {

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

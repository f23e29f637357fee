// The transcription of one item of a live session, on a thread of its own. Shared by the session and the thread.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "media/audio_types.h"
#include "speech/live_options.h"
#include "speech/transcribe_options.h"
#include "speech/transcriber.h"
#include "speech/transcription.h"

namespace transept {

struct LiveFinalAnswer {
  StatusOr<TranscribeResult> result;
  std::vector<LanguageGuess> languages;  // most probable first; empty: not detected
};

class LiveFinal final {
 public:
  // `audio`: the item's samples as a file.
  LiveFinal(AudioBytes audio, TranscribeOptions options) : audio_(std::move(audio)), options_(std::move(options)) {}

  // Transcribes, and blocks until that is done. A full queue does not refuse what was heard. Never throws.
  void run(const SpeechModel& model);
  // Aborts: run() ends soon, with kCancelled.
  void stop() { stop_.request_stop(); }
  // None: it is still running, or has not begun.
  std::optional<LiveFinalAnswer> take_answer();

  const TranscribeOptions& options() const { return options_; }

 private:
  LiveFinalAnswer transcribe(const SpeechModel& model);

  AudioBytes audio_;  // until it is transcribed
  const TranscribeOptions options_;
  std::stop_source stop_;
  Mutex mutex_;
  std::optional<LiveFinalAnswer> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace transept

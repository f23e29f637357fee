// What `transept transcribe --live` makes of a session's events: text on the console, turn after turn, and the
// transcript so far. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "apps/live_console.h"
#include "base/mutex.h"
#include "base/status.h"
#include "speech/live_observer.h"
#include "speech/transcript.h"

namespace transept {

class LiveTurns final : public LiveObserver {
 public:
  // Errors of turns, and turns whose confirmed words the transcript has otherwise, go to the log.
  explicit LiveTurns(const LiveConsole& console) : console_(console) {}

  void on_speech_started(int64_t item, int64_t audio_start_ms) override;
  void on_speech_stopped(int64_t item, int64_t audio_end_ms) override;
  void on_committed(int64_t) override {}
  void on_cleared() override {}
  void on_delta(int64_t item, std::string_view text) override;
  void on_hypothesis(int64_t item, std::string_view open) override;
  void on_completed(int64_t item, const LiveTranscript& transcript) override;
  void on_failed(int64_t item, const Status& error) override;
  void on_audio_taken() override {}
  void on_finished() override;

  struct Result {
    Transcript transcript;  // a segment for each turn that has text
    int64_t num_turns = 0;  // completed, those without text too
    int64_t num_failed = 0, num_words_told = 0, num_words_revised = 0;
  };
  Result result() const;
  // Appends to `transcript`, which is empty or was brought here before, what has come since.
  void bring(Transcript& transcript) const;
  size_t num_segments() const;
  bool is_finished() const;  // on_finished() was called
  bool is_written() const;   // the console took everything

 private:
  struct Turn {
    int64_t start_ms = 0, end_ms = -1;
    std::string told, open;
    bool is_shown = false;  // `told` is on the console
  };

  void show_first() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_turn(int64_t item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  LiveConsole console_ ABSL_GUARDED_BY(mutex_);
  // Those that have not ended. The first is on the console; later ones, whose speech has begun, wait for their line.
  std::map<int64_t, Turn> turns_ ABSL_GUARDED_BY(mutex_);
  Result result_ ABSL_GUARDED_BY(mutex_);
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept

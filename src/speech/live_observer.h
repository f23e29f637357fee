// What a live session tells. An interface of its caller, and a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "speech/transcription.h"

namespace transept {

// What one token adds to a text.
struct LiveToken {
  std::string bytes;  // may begin or end within a character
  float logprob = 0;
};

struct LiveTranscript {
  std::string text;                      // of Transcriber, without white space at both ends
  bool was_revised = false;              // `text` does not begin with the deltas joined; else it is the deltas joined
  double seconds = 0;                    // of audio
  std::string language;                  // "": the model has one alone, or there was no speech
  std::vector<LanguageGuess> languages;  // most probable first; empty: not detected
  std::vector<LiveToken> tokens;         // with LiveOptions::wants_logprobs: joined they are `text`, white space aside
  int64_t num_words_told = 0;            // in deltas before the commit
  int64_t num_words_revised = 0;         // of these, not in `text` at their place
  TranscribeCounts counts;               // of the transcription
  TranscribeTimes times;
};

// Told what a session hears. Items are counted from 0 in each session; times are whole milliseconds from the session's
// first sample, and sample (ms * sampling_rate / 1000, rounded down) is where an item is cut. All calls of one session
// come one after another, on threads of its host. They must be quick; they may call all functions of the session, but
// not destroy it while holding a lock that another call takes.
//
// Order for an item: on_speech_started (by turn detection), on_delta and on_hypothesis, on_speech_stopped (by turn
// detection), on_committed, on_delta (what the transcript adds), on_completed or on_failed. Items complete in the order
// of their commits. While one is completed the next may be open.
class LiveObserver {
 public:
  virtual ~LiveObserver() = default;
  virtual void on_speech_started(int64_t item, int64_t audio_start_ms) = 0;
  virtual void on_speech_stopped(int64_t item, int64_t audio_end_ms) = 0;
  virtual void on_committed(int64_t item) = 0;
  // Answers one clear(): the item that was open has ended, if any was; what follows has a higher number.
  virtual void on_cleared() = 0;
  // Words that are never taken back, with the space before them: joined they are the text.
  virtual void on_delta(int64_t item, std::string_view text) = 0;
  // What the newest hypothesis says behind them. Only with LiveOptions::wants_hypotheses.
  virtual void on_hypothesis(int64_t item, std::string_view open) = 0;
  virtual void on_completed(int64_t item, const LiveTranscript& transcript) = 0;
  virtual void on_failed(int64_t item, const Status& error) = 0;  // codes and params as Transcriber's
  // num_waiting_seconds() was above kLiveHighSeconds and has fallen below kLiveLowSeconds.
  virtual void on_audio_taken() = 0;
  // finish() was called, and all items have completed or failed. Nothing follows.
  virtual void on_finished() = 0;
};

}  // namespace transept

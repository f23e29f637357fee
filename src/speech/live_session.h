// Transcribes audio while it is spoken, for the server's /v1/realtime and the command line's --live. No socket, no
// JSON.
//
// A session cuts what it hears into items: turns of speech by the voice detector, or what the caller commits. While an
// item is open, hypotheses over it are made every hop of new audio, one at a time, and words on which the last ones
// agree are told (local_agreement.h). When it is committed, its samples are transcribed as a WAV file would be:
// LiveTranscript::text is what Transcriber gives for that file, whatever came before. Source of the policy: Macháček,
// Dabre and Bojar, "Turning Whisper into Real-Time Transcription System" (2023).
//
// No thread a session: sessions take turns on the host's threads, and hypotheses are requests that no thread
// waits for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "speech/live_counts.h"
#include "speech/live_observer.h"
#include "speech/live_options.h"
#include "speech/transcribe_options.h"
#include "speech/transcription.h"

namespace transept {

// Audio that was not looked at yet: above the first number of seconds the caller should stop to read, until
// LiveObserver::on_audio_taken (below the second one).
inline constexpr double kLiveHighSeconds = 60, kLiveLowSeconds = 30;

// What the sessions of a model share: threads, limits, counts. Thread-safe. Outlives its sessions.
class LiveHost final {
 public:
  struct Options {
    int num_threads = 2;             // listen to all sessions; never wait
    int num_transcribe_threads = 8;  // each waits for one final transcript
    int max_sessions = 64;
    // How items are transcribed; language, languages, initial_prompt, hotwords and cache_salt come from LiveOptions. A
    // server gives the options of a transcription request without fields.
    TranscribeOptions transcribe;
  };

  // Copies the struct; the parts of the model that it points to must outlive this. Errors: kInvalidArgument with the
  // option as param; AudioWindows' kUnimplemented.
  static StatusOr<std::unique_ptr<LiveHost>> create(const SpeechModel& model, const Options& options);
  ~LiveHost();  // REQUIRES: no session lives
  LiveHost(const LiveHost&) = delete;
  LiveHost& operator=(const LiveHost&) = delete;

  const SpeechModel& model() const;
  int num_sessions() const;
  LiveCounts counts() const;

 private:
  friend class LiveSession;
  class Impl;
  explicit LiveHost(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// One speaker. Thread-safe. What the caller asks for takes effect in the order of the calls; all calls return at once.
class LiveSession final {
 public:
  // Errors: kResourceExhausted with both numbers: the host has max_sessions; check_live_options'.
  static StatusOr<std::unique_ptr<LiveSession>> create(LiveHost& host, const LiveOptions& options,
                                                       std::shared_ptr<LiveObserver> observer);
  // Aborts what runs. No call of the observer begins any more, and none runs, but for the one that this is called from.
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  // Takes samples at options.sampling_rate, all or none; empty: nothing happens. Errors: kOutOfRange with both numbers:
  // without turn detection, the open item would be longer than max_item_seconds; kFailedPrecondition after finish().
  Status append_pcm16(std::span<const int16_t> samples);
  // The same in floats, full scale 1, rounded to 16 bits. NaN is 0.
  Status append(std::span<const float> samples);

  // Ends the open item: on_committed, then its transcript. With turn detection and no speech, what was heard last
  // is the item; if turn detection ends the item first, this adds nothing. Errors: kFailedPrecondition with both
  // numbers: less than kMinCommitMs of audio; after finish().
  Status commit();

  // Drops the audio that no commit has taken, that which waits included. on_cleared follows.
  void clear();

  // Replaces the options for what is appended from here on; the open item keeps its number. All or nothing. Errors:
  // check_live_options'; kFailedPrecondition with param "sampling_rate" while audio is buffered (clear() drops it).
  Status update(const LiveOptions& options);
  LiveOptions options() const;

  // No more audio. With turn detection the open item is committed; without, it is dropped. on_finished follows the last
  // transcript.
  void finish();

  double num_waiting_seconds() const;  // audio that has not been looked at
  int64_t num_open_finals() const;     // items that are committed and neither completed nor failed
  // Whether nothing happens until the caller asks for more: all was heard, and no hypothesis and no final runs.
  bool is_idle() const;

 private:
  class Core;
  explicit LiveSession(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace transept

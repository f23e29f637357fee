// What one live session of `bench live` measures, from the events of /v1/realtime (OpenAI's transcription sessions) and
// the moments at which they came. No socket, no clock: a test tells the time. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace transept {

// Seconds; negative: it did not happen.
struct LiveTurnMeasure {
  double first_text_s = -1;  // from when the turn's first sample was sent, in real time, to its first delta
  double completed_s = -1;   // from speech_stopped to completed
  int64_t num_deltas = 0;    // before speech_stopped
  bool is_revised = false;   // the transcript does not begin with what was told
  bool has_failed = false;
  size_t num_early_bytes = 0;  // of `told`: before speech_stopped
  std::string told, transcript;
};

struct LiveSessionMeasure {
  std::string error;  // why there was no session, or the first error event; "": none
  std::vector<LiveTurnMeasure> turns;
  std::vector<double> hops;      // between hypotheses of one turn, where the server tells them
  double audio_s = 0;            // sent
  bool has_ended_early = false;  // the server closed before it was asked to
};

class LiveMeter final {
 public:
  // The session's first sample was sent at this moment, and the following ones in real time.
  void begin(TimePoint first_sample) { first_sample_ = first_sample; }
  void take(const Json& event, TimePoint now);

  // Whether all turns that began have completed or failed.
  bool is_done() const { return open_.empty(); }
  bool is_ready() const { return is_ready_; }  // session.updated has come
  // Of all turns so far, in the order in which they ended; then those that are open.
  LiveSessionMeasure measured() const;

 private:
  struct Turn {
    LiveTurnMeasure measure;
    double start_s = -1;  // of the audio
    TimePoint stopped{}, hypothesis{};
    bool has_stopped = false, has_hypothesis = false;
  };

  Turn& turn_of(const Json& event);

  TimePoint first_sample_{};
  bool is_ready_ = false;
  std::map<std::string, Turn> open_;
  LiveSessionMeasure ended_;
};

}  // namespace transept

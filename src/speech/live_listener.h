// What a live session does with what it hears: cuts items, tells what hypotheses agree on, and has each item
// transcribed, one after another. The state behind LiveSession, which calls it from one thread at a time. Nothing
// waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "media/log_mel.h"
#include "speech/live_counts.h"
#include "speech/live_ear.h"
#include "speech/live_final.h"
#include "speech/live_hypotheses.h"
#include "speech/live_observer.h"
#include "speech/live_options.h"
#include "speech/live_recording.h"
#include "speech/turn_detector.h"

namespace transept {

class LiveListener final {
 public:
  // Borrowed.
  struct House {
    const SpeechModel* model = nullptr;
    const TranscribeOptions* transcribe = nullptr;  // LiveHost::Options
    const LogMel* voice_mel = nullptr;
    LiveTally* tally = nullptr;
    std::atomic<int64_t>* num_open_finals = nullptr;  // set before the observer is told
    std::function<void()> on_ready;                   // an answer has come: call take_answers() soon. From any thread
    std::function<void(std::function<void()>)> post;  // has a task run on a thread that may block
  };

  // The decoder that hypotheses need. Errors: kInvalidArgument with the field of LiveOptions as param.
  static StatusOr<std::unique_ptr<WindowDecoder>> make_decoder(const House& house, const LiveOptions& options);

  LiveListener(House house, LiveObserver& observer, const LiveOptions& options, std::unique_ptr<WindowDecoder> decoder);

  // ---- As LiveSession's functions, which have checked what may be checked.
  void hear(std::span<const int16_t> samples);
  void commit();
  void clear();
  void set_options(const LiveOptions& options, std::unique_ptr<WindowDecoder> decoder);
  void finish();

  // Takes what has come of hypotheses and finals.
  void take_answers();
  // Aborts all. Nothing may follow.
  void stop();

  bool is_attempt_running() const { return hypotheses_.is_running(); }  // a hypothesis is on its way
  // Audio that a commit would take, at least.
  int64_t num_held_samples() const { return recording_.size(); }
  // So much audio waits for its final that more of it should wait to be heard.
  bool is_full() const;

 private:
  struct Item {
    int64_t number = 0;
    int64_t begin = 0;  // sample
  };
  struct Final {
    int64_t item = 0;
    double seconds = 0;
    std::string told;
    int64_t num_words_told = 0;
    AudioBytes audio;  // until it is begun, as the options
    TranscribeOptions options;
    std::shared_ptr<LiveFinal> transcript;  // null: not begun
  };
  // A final that was begun in a pause which may become the end of a turn.
  struct EarlyFinal {
    int64_t begin = 0, end = 0;  // samples
    std::shared_ptr<LiveFinal> transcript;
  };

  void hear_piece(std::span<const int16_t> samples);
  void hear_frames(std::span<const FrameVoice> frames);
  void on_turn(const TurnEvent& event);
  void begin_item(int64_t begin, std::optional<int64_t> speech);
  void commit_item(int64_t end);
  void drop_item();
  void begin_early(int64_t end);
  void drop_early();
  void begin_next_final();
  std::shared_ptr<LiveFinal> begin_final(AudioBytes audio, TranscribeOptions options);
  TranscribeOptions final_options() const;
  void complete(const Final& final, LiveFinalAnswer answer);
  void keep_language(const LiveFinalAnswer& answer, double seconds);
  void tell_news();
  void tell_end();
  void forget();
  void make_ear();
  void cut_turns();

  int64_t sample_at(int64_t ms) const;  // of the ear's time
  int64_t ms_before(int64_t sample) const;
  int64_t ms_after(int64_t sample) const;
  int64_t frame_at(int64_t sample) const;

  House house_;
  LiveObserver& observer_;
  LiveOptions options_;
  std::string kept_language_;
  int64_t base_ms_ = 0;  // session's time at which the ear began to hear
  std::unique_ptr<LiveEar> ear_;
  LiveRecording recording_;
  int64_t num_decided_ = 0;  // frames whose voice is known
  std::optional<TurnDetector> turns_;
  LiveHypotheses hypotheses_;
  std::optional<Item> item_;
  int64_t next_item_ = 0;
  std::deque<Final> finals_;  // the first one runs
  std::optional<EarlyFinal> early_;
  bool has_finished_ = false, was_end_told_ = false;
  std::vector<FrameVoice> decided_;
  std::vector<TurnEvent> events_;
};

}  // namespace transept

// Cuts what the voice detector hears into turns of speech, as it is heard: OpenAI's server_vad. A turn begins
// prefix_padding_ms before speech and ends a little behind it, once silence_duration_ms of silence have followed. A
// turn of 30 s without such a pause ends at the quietest place of its last 5 s, and the next begins there.
//
// Not thread-safe. Times are milliseconds from the first frame; a frame is 10 ms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "speech/live_options.h"
#include "speech/voice_activity.h"

namespace transept {

struct TurnEvent {
  enum class Kind : uint8_t {
    kStarted,  // ms: where the turn begins
    kPaused,   // kLiveEndPaddingMs of silence: ms is where the turn ends if nothing follows
    kResumed,  // speech again: the turn does not end there
    kStopped,  // ms: where the turn ends
  };
  Kind kind;
  int64_t ms = 0;

  bool operator==(const TurnEvent&) const = default;
};

inline constexpr int64_t kTurnFrameMs = 10;
inline constexpr int64_t kLiveEndPaddingMs = 200;  // behind speech; less, if silence_duration_ms is
inline constexpr int64_t kMaxTurnMs = 30000;       // one window
inline constexpr int64_t kTurnCutMs = 5000;        // of its end: where it is cut

class TurnDetector final {
 public:
  // The first frame that is pushed is number `first_frame`; turns begin there at the earliest.
  explicit TurnDetector(const LiveTurnDetection& options, int64_t first_frame = 0)
      : options_(options), num_frames_(first_frame), last_end_(first_frame * kTurnFrameMs) {}

  // Takes the next frame; appends what it decides.
  void push(const FrameVoice& frame, std::vector<TurnEvent>& out);

  // Ends a turn at `ms`, whatever is heard: a commit. The next turn begins there or later. Appends its beginning, if
  // speech goes on. REQUIRES: not before the last event.
  void cut(int64_t ms, std::vector<TurnEvent>& out);

  // Begins a turn at `ms` without waiting for speech, and tells nothing. REQUIRES: none is open.
  void open(int64_t ms) { start_ = ms; }

  // Whether a turn is open, and its beginning.
  bool is_open() const { return start_.has_value(); }
  int64_t start_ms() const { return start_.value_or(0); }
  // Turns begin here at the earliest: audio before it is of no turn.
  int64_t earliest_ms() const;

  int64_t prefix_ms() const { return options_.prefix_padding_ms; }
  // For turns from here on; one that is open goes on.
  void set_options(const LiveTurnDetection& options) { options_ = options; }

 private:
  void listen(const FrameVoice& frame, std::vector<TurnEvent>& out);
  void follow(const FrameVoice& frame, std::vector<TurnEvent>& out);
  void cut_long(std::vector<TurnEvent>& out);
  int64_t end_padding() const;
  void stop(int64_t ms, std::vector<TurnEvent>& out);

  LiveTurnDetection options_;
  int64_t num_frames_ = 0;
  int64_t last_end_ = 0;            // ms: of the last turn
  std::optional<int64_t> speech_;   // frame where speech may have begun, too short yet
  std::optional<int64_t> start_;    // ms: of the open turn
  std::optional<int64_t> silence_;  // frame where the open turn fell silent
  bool is_paused_ = false;          // kPaused was told
  std::vector<float> levels_;       // of the last kTurnCutMs of the open turn
};

}  // namespace transept

// The hypotheses of one live session: one greedy attempt at a time over what is open of an item, whenever there is a
// hop of new audio that has speech in it; and what they agree on. Nothing waits: an attempt is a request to the
// engine, whose answer take_answer() takes when it is there.
//
// The open window begins anew where the audio before is settled: behind a segment whose words are told, once it is
// longer than 15 s; at a pause then, for models without segments; at its quietest place at 28 s; and after 2 s of
// silence.
//
// Not thread-safe, but on_ready is called by the engine's thread. A frame is 0.01 s of the session's audio (LiveEar).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/async_engine.h"
#include "core/encoder_features.h"
#include "speech/decoding_rules.h"
#include "speech/live_counts.h"
#include "speech/live_ear.h"
#include "speech/live_options.h"
#include "speech/local_agreement.h"
#include "speech/voice_activity.h"
#include "speech/window_decoder.h"

namespace transept {

class LiveHypotheses final {
 public:
  // What is to be told.
  struct News {
    std::string delta;  // confirmed; "": nothing
    std::string open;   // behind it
  };

  // Borrows all. `on_ready`: RequestSpec::on_ready.
  LiveHypotheses(const SpeechModel& model, LiveTally& tally, std::function<void()> on_ready)
      : model_(model), tally_(tally), on_ready_(std::move(on_ready)) {}

  // For attempts from here on; what runs is aborted. The decoder is greedy. `threshold`: of speech.
  void set_options(std::unique_ptr<WindowDecoder> decoder, const LivePolicy& policy, double threshold);
  // The language of all items from here on.
  Status keep_language(const std::string& language);

  // Other audio follows, whose frames count from 0.
  void begin_audio();
  // An item begins. `speech`: the frame at which speech began, if that is known.
  void begin_item(int64_t frame, std::optional<int64_t> speech);
  // The item has ended: aborts what runs. Returns all that was told of it.
  std::string end_item();

  // The voice of the next frame. Each frame is told, in an item or not.
  void hear(const FrameVoice& voice);
  // Starts an attempt if it is time. `ear` has heard all frames that hear() was told, and more.
  void consider(const LiveEar& ear);
  // Takes what has come of the running attempt.
  void take_answer();
  // What is new since the last call.
  std::optional<News> take_news();

  int64_t num_told_words() const { return agreement_.num_told_words(); }
  bool is_running() const { return attempt_.has_value(); }
  // Frames before this one are needed no more.
  int64_t first_needed() const;

 private:
  struct Attempt {
    int64_t begin = 0, end = 0;  // frames
    bool closes_window = false;
    bool asks_language = false;
    std::shared_ptr<const EncoderFeatures> features;
    std::optional<RequestStream> stream;
  };

  std::optional<Attempt> next_attempt(int64_t now);
  bool is_time(int64_t now);
  void settle_silence();
  int64_t quietest(int64_t begin, int64_t end) const;
  void start(Attempt attempt);
  Status ask(Attempt& attempt);
  Status read(const Attempt& attempt, const RequestOutput& output);
  Status read_language(const RequestOutput& output, double seconds);
  void cut_behind_segments(const WindowAnswer& answer, int64_t num_frames);
  void begin_window(int64_t frame);
  void tell(std::string_view delta);
  HeardText heard_text(const WindowAnswer& answer) const;

  const SpeechModel& model_;
  LiveTally& tally_;
  std::function<void()> on_ready_;
  std::unique_ptr<WindowDecoder> decoder_;
  LivePolicy policy_;
  float threshold_ = 0.5f;
  bool has_language_ = false;      // it is given or sure
  bool is_language_kept_ = false;  // for the next item, too

  // The voice of frames, up to num_heard_.
  int64_t num_heard_ = 0;
  std::vector<float> levels_;  // of the last frames of these, in the window

  // The item. No value: none is open.
  std::optional<int64_t> item_begin_;
  int64_t window_begin_ = 0;
  int64_t last_end_ = 0;                // of the last attempt
  std::optional<int64_t> last_speech_;  // frame in the window
  bool spoke_since_ = false;            // the last attempt began
  int num_quiet_ = 0;                   // attempts since the last speech
  LocalAgreement agreement_;
  std::optional<PreviousText> previous_;
  std::vector<int32_t> last_tokens_;  // of the window's last attempt: the next one's draft
  std::optional<Attempt> attempt_;
  std::string delta_;
  bool has_news_ = false;
};

}  // namespace transept

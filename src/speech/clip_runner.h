// Clips of one audio file, window after window: openai-whisper's loop (transcribe.py, transcribe). Sequential mode is
// one runner over all clips; batched mode is a runner a window, many at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/encoder_features.h"
#include "speech/decoding_rules.h"
#include "speech/transcribe_options.h"
#include "speech/transcript.h"
#include "speech/window_decoder.h"
#include "speech/window_segments.h"

namespace transept {

class ClipRunner final {
 public:
  // The encoder's features of frames [begin, end) of the audio, at most a window.
  using Features = std::function<StatusOr<std::shared_ptr<const EncoderFeatures>>(int64_t begin, int64_t end)>;

  struct Options {
    const TranscribeOptions* asked = nullptr;
    int64_t num_frames = 0;  // of the whole audio
    // Tokens after a window's last pair of timestamps become a segment up to its end where the clip ends there, instead
    // of a window of their own: it was cut at a pause.
    bool clips_end_in_pauses = false;
    bool begins_audio = true;                             // the first window is the audio's: the prefix stands in it
    int32_t timestamp_begin = 0;                          // beyond the vocabulary: a model without timestamps
    std::function<Status()> before_window;                // an error ends the run
    std::function<bool(const FrameRange&)> is_silent;     // such windows are passed over, unencoded; empty: none
    std::function<void(std::span<Segment>)> on_segments;  // of one window, in order; ids are the caller's
    std::function<void(int64_t frame)> on_seek;           // done up to here
  };

  // Borrows the decoder.
  ClipRunner(const WindowDecoder& decoder, Features features, Options options);

  Status run(std::span<const FrameRange> clips);

 private:
  struct Window {
    int64_t seek = 0, size = 0;  // frames
    FrameRange clip;
  };
  // Decodes the window and says where the next one begins.
  StatusOr<int64_t> run_window(const Window& window);
  WindowSegments cut(const Window& window, const WindowAnswer& answer) const;
  StatusOr<bool> add_words(const Window& window, const EncodedInput& encoded, WindowSegments& segments);

  const WindowDecoder& decoder_;
  Features features_;
  Options options_;
  PreviousText previous_;
  double last_speech_timestamp_ = 0;
  bool with_prefix_;  // in the next window
};

}  // namespace transept

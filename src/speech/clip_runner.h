// Transcribes clips of one audio file, window after window: openai-whisper's loop (transcribe.py, transcribe).
// Sequential mode runs one runner over all clips; batched mode runs one per window, several concurrently. Owned by the
// transcription; used by one thread. It calls back on that thread.
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
  // Returns the encoder's features of frames [begin, end) of the audio; at most a window.
  using Features = std::function<StatusOr<std::shared_ptr<const EncoderFeatures>>(int64_t begin, int64_t end)>;

  struct Options {
    const TranscribeOptions* asked = nullptr;  // borrowed; required
    int64_t num_frames = 0;                    // of the whole audio
    // For clips that were cut at a pause: tokens after the last pair of timestamps become a segment up to the clip's
    // end, if the window ends there, instead of a window of their own.
    bool clips_end_in_pauses = false;
    bool begins_audio = true;                          // the first window is the first of the audio: it gets the prefix
    int32_t timestamp_begin = 0;                       // the vocabulary's size for a model without timestamps
    std::function<Status()> before_window;             // its error ends the run; required
    std::function<bool(const FrameRange&)> is_silent;  // such windows are skipped without an encode; empty: none
    std::function<void(std::span<Segment>)> on_segments;  // of one window, in order; the caller sets ids; required
    std::function<void(int64_t frame)> on_seek;           // everything before it is done; required
  };

  // Borrows the decoder, whose language must be known before the first window is decoded.
  ClipRunner(const WindowDecoder& decoder, Features features, Options options);

  // Transcribes the clips in order; the text of one conditions the next. Errors: before_window's, those of the
  // features, the decoder's.
  Status run(std::span<const FrameRange> clips);

 private:
  struct Window {
    int64_t seek = 0, size = 0;  // frames
    FrameRange clip;
  };
  // Decodes the window. Returns the frame at which the next one begins.
  StatusOr<int64_t> run_window(const Window& window);
  WindowSegments cut(const Window& window, const WindowAnswer& answer) const;
  StatusOr<bool> add_words(const Window& window, const EncodedInput& encoded, WindowSegments& segments);

  const WindowDecoder& decoder_;
  Features features_;
  Options options_;
  PreviousText previous_;
  double last_speech_timestamp_ = 0;
  bool with_prefix_;  // for the next window
};

}  // namespace transept

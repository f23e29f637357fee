// Decisions about one window's decoding: again at a higher temperature? silence? after which text? from which clips?
// Source: openai-whisper, transcribe.py and decoding.py. Not thread-safe where it has state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

// Of one decoding; not numbers fail no threshold.
struct WindowScores {
  double compression_ratio = 0, avg_logprob = 0, no_speech_prob = 0;
};

// None: not asked.
struct DecodingThresholds {
  std::optional<double> compression_ratio = 2.4, logprob = -1.0, no_speech = 0.6;
};

// Too repetitive, or too improbable (unless it is silence).
bool needs_fallback(const WindowScores& scores, const DecodingThresholds& thresholds);
// The window holds no speech: it gives no segments, and the next begins after it.
bool is_silence(const WindowScores& scores, const DecodingThresholds& thresholds);

// temperature, temperature + increment, ... up to 1 (numpy.arange(temperature, 1 + 1e-6, increment)); without an
// increment that temperature alone, and so where it is above 1.
// Errors: not finite, negative, an increment that is not above 0 or makes more than 1000 steps.
StatusOr<std::vector<double>> temperature_ladder(double temperature, std::optional<double> increment);

// Text that conditions the next window. Holds at most 2 x max_tokens ids.
//
// Hotwords stand before every window's previous text, which has the room that is left. With `carry` the initial prompt
// does, too, behind them. A carried
// prompt that leaves none is pushed out by what follows it, as the reference's slices ([-0:], [--n:]) and its cut to
// the last max_tokens would have it: previous text loses as many tokens from its beginning as the prompt has too many,
// and what then is last stays.
class PreviousText final {
 public:
  // max_tokens: max_target_positions / 2 - 1. Without `carry` the initial prompt is the first previous text.
  PreviousText(std::span<const int32_t> initial_prompt, bool carry, int64_t max_tokens,
               std::span<const int32_t> hotwords = {});

  // What follows <|startofprev|>, at most max_tokens; empty: the prompt has no <|startofprev|>.
  std::vector<int32_t> prompt() const;
  // Tokens of the segments of a window, timestamps included.
  void append(std::span<const int32_t> tokens);
  // After a window at a temperature above 0.5, or of a run that does not condition on previous text.
  void reset();

 private:
  std::vector<int32_t> carried_;
  std::vector<int32_t> tokens_;  // the last ones of num_tokens_
  int64_t max_tokens_;
  int64_t num_carried_ = 0;  // of hotwords and the initial prompt, all of them
  int64_t num_tokens_ = 0;   // appended since the reset
};

struct FrameRange {
  int64_t begin = 0, end = 0;
  bool operator==(const FrameRange&) const = default;
};

// "start,end,start,end,...": seconds into frames of 0.01 s, rounded half to even; a last end that is missing is the end
// of the audio, and so is "". Ends beyond the audio are its end; what is empty then is left out. Ranges may overlap and
// go back, as in the reference. Errors (param "clip_timestamps"): not a number, not finite, negative, an end before its
// start (which the reference takes for an empty clip, and gives an empty transcript), too many (10000).
StatusOr<std::vector<FrameRange>> parse_clip_timestamps(std::string_view text, int64_t content_frames);

}  // namespace transept

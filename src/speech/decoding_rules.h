// Decisions around the decoding of a window: fallback to a higher temperature, silence, conditioning on previous text,
// clips. Source: openai-whisper, transcribe.py and decoding.py. The functions are pure, thread-safe; PreviousText is
// not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

// The scores of one decoding. NaN is neither above nor below a threshold.
struct WindowScores {
  double compression_ratio = 0, avg_logprob = 0, no_speech_prob = 0;
};

// nullopt: no check.
struct DecodingThresholds {
  std::optional<double> compression_ratio = 2.4, logprob = -1.0, no_speech = 0.6;
};

// True if the answer is too repetitive, or too improbable and not silence.
bool needs_fallback(const WindowScores& scores, const DecodingThresholds& thresholds);
// True if the window holds no speech: it has no segments, and the next window begins after it.
bool is_silence(const WindowScores& scores, const DecodingThresholds& thresholds);

// Returns temperature, temperature + increment, ... up to 1 (numpy.arange(temperature, 1 + 1e-6, increment)). Returns
// the temperature alone without an increment, or if it is above 1. Errors: kInvalidArgument with the option as param: a
// temperature that is negative or not finite; an increment that is not finite, not above 0, or makes more than 1000
// steps.
StatusOr<std::vector<double>> temperature_ladder(double temperature, std::optional<double> increment);

// The text that conditions the next window. Holds at most 2 x max_tokens ids.
//
// Prompts begin with the hotwords and, with `carry`, the initial prompt; previous text fills the room that is left. A
// carried part of max_tokens or more shortens the previous text from its beginning by the excess, and the last
// max_tokens of both remain: the reference's slices ([-0:], [--n:]) have this effect.
class PreviousText final {
 public:
  // max_tokens: max_target_positions / 2 - 1, as the reference. Without `carry` the initial prompt is the first
  // previous text.
  PreviousText(std::span<const int32_t> initial_prompt, bool carry, int64_t max_tokens,
               std::span<const int32_t> hotwords = {});

  // Returns the tokens after <|startofprev|>, at most max_tokens. Empty: the prompt has no <|startofprev|>.
  std::vector<int32_t> prompt() const;
  // Appends the tokens of a window's segments, timestamps included.
  void append(std::span<const int32_t> tokens);
  // Forgets previous text, but not what is carried. Called after a window at a temperature above 0.5, and after every
  // window without condition_on_previous_text.
  void reset();

 private:
  std::vector<int32_t> carried_;
  std::vector<int32_t> tokens_;  // the last max_tokens_ of num_tokens_
  int64_t max_tokens_;
  int64_t num_carried_ = 0;  // tokens of hotwords and initial prompt, before the cut to max_tokens_
  int64_t num_tokens_ = 0;   // appended since the reset
};

// Frames [begin, end) of the audio, of 0.01 s.
struct FrameRange {
  int64_t begin = 0, end = 0;
  bool operator==(const FrameRange&) const = default;
};

// Parses "start,end,start,end,..." in seconds into frames of 0.01 s, rounded half to even. A missing last end is the
// end of the audio; "" is the whole audio. Cuts ends at the end of the audio and drops clips that are empty then. Clips
// may overlap and go back, as in the reference. Errors: kInvalidArgument with param "clip_timestamps": not a number,
// not finite, negative, more than 20,000 times, or an end before its start (the reference takes that for an empty
// clip).
StatusOr<std::vector<FrameRange>> parse_clip_timestamps(std::string_view text, int64_t content_frames);

}  // namespace transept

// One request and its answer as the client saw them. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace transept {

struct Exchange {
  TimePoint due;   // latencies count from here: the planned time (open loop), or the time of sending (closed loop)
  TimePoint sent;  // its first byte
  TimePoint end;   // its answer's last byte, or its failure
  // When text came, for streams: the times of the events with text. If no event had text, of those that stand for
  // generated tokens.
  std::vector<TimePoint> text_times;

  int status = 0;            // HTTP's; 0: no answer
  std::string failure_text;  // the server's message, if any
  std::string failure;       // its kind, for counting: "HTTP 429", "timeout"; "": the answer is whole

  std::optional<int64_t> input_tokens, output_tokens;  // by the server's `usage`
  double audio_seconds = 0;                            // of the input, if known

  bool is_ok() const { return failure.empty(); }
};

}  // namespace transept

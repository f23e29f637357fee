// One request and its answer as the client saw them. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace transept {

struct Exchange {
  TimePoint due;   // latencies count from here: when it was meant to be sent (open loop), or was sent (closed loop)
  TimePoint sent;  // its first byte
  TimePoint end;   // its answer's last byte, or when it failed
  // When text came, of streams: the times of the events that brought some. Where no event did, of those that stand for
  // generated tokens.
  std::vector<TimePoint> text_times;

  int status = 0;            // HTTP's; 0: no answer
  std::string failure_text;  // what the server said of it, if anything
  std::string failure;       // its kind, for counting: "HTTP 429", "timeout"; "": the answer is whole

  std::optional<int64_t> input_tokens, output_tokens;  // by the server's `usage`
  double audio_seconds = 0;                            // of the input, where that is known

  bool is_ok() const { return failure.empty(); }
};

}  // namespace transept

// The state of an engine between two steps, as operators see it. Values.
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine_state.h"

namespace transept {

struct EngineSnapshot : EngineState {
  int32_t max_queued = 0;
  struct Counts {          // since the start
    int64_t finished = 0;  // with an answer
    int64_t aborted = 0;   // by abort, a dropped stream, or the stop of the engine
    int64_t expired = 0;   // past their deadline
    int64_t failed = 0;    // with any other error
    int64_t refused = 0;   // not accepted: the queue was full
  } counts;
};

// Several replicas as one: sums the counts and concatenates the lists, replica by replica. REQUIRES: at least one
// replica.
EngineSnapshot add_up(std::span<const EngineSnapshot> replicas);

}  // namespace transept

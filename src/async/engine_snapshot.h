// The state of an engine between two steps, as operators see it. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/llm_engine.h"

namespace transept {

struct EngineSnapshot {
  std::vector<std::string> running, waiting, swapped;  // request ids, in order of arrival
  struct Blocks {
    int32_t total = 0, free = 0, self = 0, cross = 0, pinned = 0;  // on the device
    int32_t host_total = 0, host_free = 0;
  } blocks;
  int32_t num_queued = 0;  // requests before their first step
  int32_t max_queued = 0;
  struct Counts {          // since the start
    int64_t finished = 0;  // with an answer
    int64_t aborted = 0;   // by abort, a dropped stream, or the stop of the engine
    int64_t expired = 0;   // past their deadline
    int64_t failed = 0;    // with any other error
    int64_t refused = 0;   // not accepted: the queue was full
  } counts;
  LLMEngine::Stats stats;
  ExecutorStats executor;
};

// Several replicas as one: sums the counts and concatenates the lists, replica by replica. REQUIRES: at least one
// replica.
EngineSnapshot add_up(std::span<const EngineSnapshot> replicas);

}  // namespace transept

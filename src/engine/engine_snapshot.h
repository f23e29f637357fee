// How an engine stood between two steps: what operators see. Values.
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
  int32_t num_queued = 0;  // requests that have not had their first step
  int32_t max_queued = 0;
  struct Counts {          // since the start
    int64_t finished = 0;  // with an answer
    int64_t aborted = 0;   // by abort, or because their stream was let go
    int64_t expired = 0;   // past their deadline
    int64_t failed = 0;    // with any other error
    int64_t refused = 0;   // not taken: the queue was full
  } counts;
  LLMEngine::Stats stats;
  ExecutorStats executor;
};

// Several replicas as one: counts and lists are added up, replica by replica. REQUIRES: there is one.
EngineSnapshot add_up(std::span<const EngineSnapshot> replicas);

}  // namespace transept

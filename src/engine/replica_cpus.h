// How many threads each replica of the engine has, and which processors they are pinned to. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct ReplicaCpus {
  int32_t num_threads = 1;  // of each replica
  std::vector<int> cpus;    // num_threads for each replica, one replica after another; empty: not pinned

  std::vector<int> of_replica(int32_t replica) const;
  std::string text() const;  // "0-1 | 2-3"
};

// `threads` 0: as many as there are processors (in the list, if one is given), divided among the replicas. `affinity`:
// none; auto, one core a thread where there are enough processors, else none; or a list, from which threads are given
// processors in order. Errors, of --cpu-affinity: no such word or list; a processor that is not among `available`
// (ascending; empty: unknown, and none can be pinned to); fewer than threads.
StatusOr<ReplicaCpus> plan_replica_cpus(int32_t threads, int32_t replicas, std::string_view affinity,
                                        const std::vector<int>& available);

}  // namespace transept

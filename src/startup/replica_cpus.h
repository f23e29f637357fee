// Plans how many threads each replica of the engine has, and which processors they are pinned to. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct ReplicaCpus {
  int32_t num_threads = 1;  // per replica
  std::vector<int> cpus;    // num_threads for each replica, one replica after another; empty: not pinned

  std::vector<int> of_replica(int32_t replica) const;
  std::string text() const;  // "0-1 | 2-3"
};

// `threads` 0: as many as there are processors (in the list, if one is given), divided among the replicas. `affinity`:
// none; auto (one core per thread if there are enough processors, else none); or a list, whose processors are assigned
// to threads in order. Errors, of --cpu-affinity: an invalid word or list; a processor that is not in `available`
// (ascending; empty: unknown, so none can be pinned to); fewer processors than threads. `flag`: what gave the number of
// replicas; ranks are divided in the same way.
StatusOr<ReplicaCpus> plan_replica_cpus(int32_t threads, int32_t replicas, std::string_view affinity,
                                        const std::vector<int>& available, std::string_view flag = "--replicas");

}  // namespace transept

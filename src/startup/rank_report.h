// What each rank of a model is and has loaded: lines of the log at start-up, /debug/state. Values; functions: one
// thread of each rank calls report_ranks().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/communicator.h"
#include "base/status.h"
#include "rank/executor.h"
#include "startup/engine_config.h"

namespace transept {

// As ranks give it to each other: bytes of one build.
struct RankReport {
  std::array<char, 64> host{};   // texts end with 0, and are cut
  std::array<char, 64> cpus{};   // processors that its num_threads threads run on, as "0-3,8"
  std::array<char, 16> nodes{};  // NUMA nodes of these; "": unknown
  int64_t pid = 0;
  int32_t num_threads = 0;
  int32_t num_threads_alone = 0;  // in a step that is alone in a pipeline
  int32_t num_blocks = 0;
  uint64_t weight_bytes = 0, kv_bytes = 0, step_bytes = 0;
  double seconds = 0;  // of loading

  std::string host_text() const;
  std::string cpus_text() const;
  std::string nodes_text() const;
  // "rank 1: host b, pid 77, node 0, processors 0-1, 2 threads, 1.1 GB of weights, ..."
  std::string text(int rank) const;
};

// Every rank's, by rank, on all of them. Errors: the communicator's.
StatusOr<std::vector<RankReport>> report_ranks(Communicator& ranks, const EngineConfig& config,
                                               const ExecutorInfo& info, double load_seconds);

// The NUMA nodes that have these processors, as "0" or "0-1"; "": `folder` does not say it.
std::string numa_nodes(std::span<const int> cpus, const std::string& folder = "/sys/devices/system/node");

}  // namespace transept

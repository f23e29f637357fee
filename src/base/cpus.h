// Processors: the affinity of this process, the order in which threads should take processors, and lists of processors
// as text. Functions are thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class CpuSet;

// Returns the processors that the calling thread may run on, ascending; empty if the system does not report them.
std::vector<int> available_cpus();

// Parses a list like "0-3,8", as taskset and the kernel write it, in the given order. Errors: kInvalidArgument for any
// other text ("" included), a processor named twice, or one above kMaxCpu; the message does not name the flag.
inline constexpr int kMaxCpu = 4095;
StatusOr<std::vector<int>> parse_cpu_list(std::string_view text);
// Writes `cpus` in that form; joins runs of consecutive numbers.
std::string format_cpu_list(std::span<const int> cpus);

// Orders `cpus` so that one processor of each core comes first, then the second of each: hyper-threads of one core
// share its units. Reads `folder`/cpuN/topology; returns `cpus` unchanged if a processor has none there.
std::vector<int> spread_over_cores(std::vector<int> cpus, const std::string& folder = "/sys/devices/system/cpu");

// Returns false if the system refuses. Threads that a pinned thread starts inherit its affinity.
bool pin_this_thread(int cpu);

// Keeps the thread that made it off one processor. Allocates when it is made only.
class AvoidedCpu final {
 public:
  AvoidedCpu();
  ~AvoidedCpu();
  AvoidedCpu(const AvoidedCpu&) = delete;
  AvoidedCpu& operator=(const AvoidedCpu&) = delete;

  // From now on the thread runs on any processor that it may run on but this one; -1: on any. No effect if there is no
  // other, or if the system refuses.
  void set(int cpu);

 private:
  int cpu_ = -1;
  std::unique_ptr<CpuSet> all_, others_;  // all_: while one is avoided, what it was before
};

}  // namespace transept

// Processors: the affinity of this process, the order in which threads should take processors, and lists of processors
// as text. Functions are thread-safe.
#pragma once

#include <sched.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr int kMaxCpu = 4095;

// Returns the processors that the calling thread may run on, ascending; empty if the system does not report them.
std::vector<int> available_cpus();

// Parses a list like "0-3,8", as taskset and the kernel write it, in the given order. Errors: kInvalidArgument for any
// other text ("" included), a processor named twice, or one above kMaxCpu; the message does not name the flag.
StatusOr<std::vector<int>> parse_cpu_list(std::string_view text);
// Writes `cpus` in that form; joins runs of consecutive numbers.
std::string format_cpu_list(std::span<const int> cpus);

// Orders `cpus` so that one processor of each core comes first, then the second of each: hyper-threads of one core
// share its units. Reads `folder`/cpuN/topology; returns `cpus` unchanged if a processor has none there.
std::vector<int> spread_over_cores(std::vector<int> cpus, const std::string& folder = "/sys/devices/system/cpu");

// Returns false if the system refuses. Threads that a pinned thread starts inherit its affinity.
bool pin_this_thread(int cpu);

// Whether the system lets this thread choose its processors: a container may forbid it.
bool may_pin_threads();

// A set of processors up to kMaxCpu: cpu_set_t has room for 1024. A value.
class CpuSet final {
 public:
  static constexpr size_t kBytes = CPU_ALLOC_SIZE(kMaxCpu + 1);

  cpu_set_t* get() { return sets_.data(); }  // of kBytes, for the system's calls
  bool has(int cpu) const { return CPU_ISSET_S(static_cast<size_t>(cpu), kBytes, sets_.data()) != 0; }
  void add(int cpu) { CPU_SET_S(static_cast<size_t>(cpu), kBytes, sets_.data()); }
  void remove(int cpu) { CPU_CLR_S(static_cast<size_t>(cpu), kBytes, sets_.data()); }
  int count() const { return CPU_COUNT_S(kBytes, sets_.data()); }

 private:
  std::array<cpu_set_t, kBytes / sizeof(cpu_set_t)> sets_{};
};

// Keeps the thread that made it off one processor. Never allocates.
class AvoidedCpu final {
 public:
  AvoidedCpu() = default;
  ~AvoidedCpu() { set(-1); }
  AvoidedCpu(const AvoidedCpu&) = delete;
  AvoidedCpu& operator=(const AvoidedCpu&) = delete;

  // From now on the thread runs on any processor that it may run on but this one; -1: on any. No effect if there is no
  // other, or if the system refuses.
  void set(int cpu);

 private:
  int cpu_ = -1;
  CpuSet all_;  // while one is avoided: what the thread had before
};

}  // namespace transept

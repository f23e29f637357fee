// Processors: which of them this process may use, in which order threads had best take them, how a list of them is
// written. Pure but for what they ask the system: thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

// Those that this process may run on, ascending; empty where the system does not say.
std::vector<int> available_cpus();

// "0-3,8" as taskset and the kernel write it, in the order given. Errors: anything else, a number twice, or past
// kMaxCpu; they say what is wrong, and not of which flag.
inline constexpr int kMaxCpu = 4095;
StatusOr<std::vector<int>> parse_cpu_list(std::string_view text);
// The same of an ascending list: "0-3,8".
std::string format_cpu_list(std::span<const int> cpus);

// One processor of each core first, then the second of each, where cores have several: two threads on one core share
// what it computes with. `folder` has cpuN/topology, as /sys/devices/system/cpu; where it says nothing the order stays.
std::vector<int> spread_over_cores(std::vector<int> cpus, const std::string& folder = "/sys/devices/system/cpu");

// False: the system did not want to. A thread that is started by one that is pinned is pinned as well.
bool pin_this_thread(int cpu);

}  // namespace transept

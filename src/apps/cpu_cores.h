// Which processors belong to one core: its hyper-threads. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace transept {

// Groups `cpus` by core, in the order given: cores by their first processor. Reads `folder`/cpuN/topology; a processor
// that has none there is a core of its own.
std::vector<std::vector<int>> group_by_core(std::span<const int> cpus,
                                            const std::string& folder = "/sys/devices/system/cpu");

}  // namespace transept

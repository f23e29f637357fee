#include "apps/cpu_cores.h"

#include <fstream>
#include <map>

#include "base/cpus.h"
#include "base/strings.h"

namespace transept {
namespace {

// The first processor of its core, which names the core.
int core_of(int cpu, const std::string& folder) {
  std::string text;
  std::getline(std::ifstream(str_cat(folder, "/cpu", cpu, "/topology/thread_siblings_list")), text);
  const StatusOr<std::vector<int>> siblings = parse_cpu_list(text);
  return siblings.ok() ? siblings->front() : cpu;
}

}  // namespace

std::vector<std::vector<int>> group_by_core(std::span<const int> cpus, const std::string& folder) {
  std::vector<std::vector<int>> cores;
  std::map<int, size_t> place;
  for (const int cpu : cpus) {
    const auto [at, is_new] = place.try_emplace(core_of(cpu, folder), cores.size());
    if (is_new) cores.emplace_back();
    cores[at->second].push_back(cpu);
  }
  return cores;
}

}  // namespace transept

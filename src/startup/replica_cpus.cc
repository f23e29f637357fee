#include "startup/replica_cpus.h"

#include <algorithm>

#include "base/cpus.h"
#include "base/thread_pool.h"

namespace transept {
namespace {

StatusOr<std::vector<int>> cpus_of_list(std::string_view affinity, const std::vector<int>& available) {
  StatusOr<std::vector<int>> cpus = parse_cpu_list(affinity);
  if (!cpus.ok()) {
    return invalid_argument("--cpu-affinity ", affinity, ": ", error_message(cpus.status()), ", or auto or none");
  }
  for (const int cpu : *cpus) {
    if (std::ranges::binary_search(available, cpu)) continue;
    return invalid_argument("--cpu-affinity ", affinity, ": this process may not run on processor ", cpu, "; it has ",
                            format_cpu_list(available));
  }
  return cpus;
}

}  // namespace

std::vector<int> ReplicaCpus::of_replica(int32_t replica) const {
  if (cpus.empty()) return {};
  const auto begin = cpus.begin() + std::ptrdiff_t{replica} * num_threads;
  return {begin, begin + num_threads};
}

std::string ReplicaCpus::text() const {
  std::string text;
  for (size_t begin = 0; begin < cpus.size(); begin += static_cast<size_t>(num_threads)) {
    const std::span<const int> mine = std::span(cpus).subspan(begin, static_cast<size_t>(num_threads));
    text += str_cat(text.empty() ? "" : " | ", format_cpu_list(mine));
  }
  return text;
}

StatusOr<ReplicaCpus> plan_replica_cpus(int32_t threads, int32_t replicas, std::string_view affinity,
                                        const std::vector<int>& available, std::string_view flag) {
  const bool is_list = affinity != "auto" && affinity != "none";
  ReplicaCpus plan;
  if (is_list) {
    ASSIGN_OR_RETURN(plan.cpus, cpus_of_list(affinity, available));
  } else if (affinity == "auto") {
    plan.cpus = spread_over_cores(available);
  }
  const int32_t num_cpus =
      is_list ? static_cast<int32_t>(plan.cpus.size()) : std::max(static_cast<int32_t>(available.size()), 1);
  plan.num_threads = threads > 0 ? threads : std::max(num_cpus / replicas, 1);
  const int64_t num_pinned = int64_t{plan.num_threads} * replicas;
  if (num_pinned <= static_cast<int64_t>(plan.cpus.size())) {
    plan.cpus.resize(static_cast<size_t>(num_pinned));
    return plan;
  }
  if (is_list) {
    return invalid_argument("--cpu-affinity ", affinity, ": ", plan.cpus.size(), " processors for ", num_pinned,
                            " threads (", flag, " ", replicas, ", ", plan.num_threads, " threads each)");
  }
  plan.cpus.clear();
  return plan;
}

}  // namespace transept

#include "startup/rank_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/cpus.h"
#include "startup/runner_choices.h"

namespace transept {
namespace {

template <size_t N>
void copy_text(std::string_view text, std::array<char, N>& to) {
  to.fill(0);
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}

// Another rank's bytes may lack the end.
template <size_t N>
std::string text_of(const std::array<char, N>& from) {
  return {from.begin(), std::find(from.begin(), from.end(), 0)};
}

std::vector<int> cpus_of(const EngineConfig& config, int rank) {
  const StatusOr<RunnerChoices> choices = make_runner_choices(config);
  std::vector<int> pinned;
  if (choices.ok()) pinned = choices->cpus.of_replica(rank % config.ranks_per_node());
  std::ranges::sort(pinned);
  return pinned.empty() ? available_cpus() : pinned;
}

}  // namespace

std::string numa_nodes(std::span<const int> cpus, const std::string& folder) {
  std::vector<int> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node") || name.find_first_not_of("0123456789", 4) != std::string::npos) continue;
    const StatusOr<std::vector<int>> node = parse_cpu_list(name.substr(4));
    std::ifstream file(entry.path() / "cpulist");
    std::string line;
    if (!node.ok() || !std::getline(file, line)) continue;
    const StatusOr<std::vector<int>> of_node = parse_cpu_list(line);
    if (!of_node.ok()) continue;  // a node of memory alone
    const auto is_here = [&](int cpu) { return std::ranges::find(*of_node, cpu) != of_node->end(); };
    if (std::ranges::any_of(cpus, is_here)) nodes.push_back(node->front());
  }
  std::ranges::sort(nodes);
  return nodes.empty() ? "" : format_cpu_list(nodes);
}

std::string RankReport::host_text() const { return text_of(host); }
std::string RankReport::cpus_text() const { return text_of(cpus); }
std::string RankReport::nodes_text() const { return text_of(nodes); }

std::string RankReport::text(int rank) const {
  char taken[32];
  std::snprintf(taken, sizeof taken, "%.2f", seconds);
  const std::string node = text_of(nodes);
  return str_cat("rank ", rank, ": host ", text_of(host), ", pid ", pid, node.empty() ? "" : ", node ", node,
                 ", processors ", text_of(cpus), ", ", num_threads, num_threads == 1 ? " thread" : " threads",
                 num_threads_alone > num_threads ? str_cat(" (", num_threads_alone, " for a step alone), ") : ", ",
                 format_bytes(weight_bytes), " of weights, ", num_blocks, " KV blocks (", format_bytes(kv_bytes), "), ",
                 format_bytes(step_bytes), " of step memory, after ", taken, " s");
}

StatusOr<std::vector<RankReport>> report_ranks(Communicator& ranks, const EngineConfig& config,
                                               const ExecutorInfo& info, double load_seconds) {
  RankReport own;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) copy_text(text_of(host), own.host);
  const std::vector<int> cpus = cpus_of(config, ranks.rank());
  copy_text(format_cpu_list(cpus), own.cpus);
  copy_text(numa_nodes(cpus), own.nodes);
  own.pid = ::getpid();
  own.num_threads = info.num_threads;
  own.num_threads_alone = info.num_threads_alone;
  own.num_blocks = info.num_device_blocks;
  own.kv_bytes = static_cast<uint64_t>(info.num_device_blocks) * info.block_bytes;
  own.step_bytes = info.step_bytes;
  own.seconds = load_seconds;
  for (const PackedLayer& layer : info.packed_layers) own.weight_bytes += layer.bytes;
  std::memcpy(ranks.outbox(sizeof own).data(), &own, sizeof own);
  ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(sizeof own));
  std::vector<RankReport> reports(parts.size());
  for (size_t rank = 0; rank < parts.size(); ++rank) std::memcpy(&reports[rank], parts[rank].data(), sizeof own);
  return reports;
}

}  // namespace transept

#include "base/cpus.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <utility>

#include "base/strings.h"

namespace transept {
namespace {

StatusOr<int> parse_cpu(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = !text.empty() && end == text.data() + text.size() && text.front() != '-';
  if (is_number && error == std::errc::result_out_of_range) value = kMaxCpu + 1;
  if (!is_number || (error != std::errc() && value <= kMaxCpu)) {
    return invalid_argument("\"", text, "\" is no processor: expected a list like 0-3,8");
  }
  if (value > kMaxCpu) return invalid_argument("processor ", text, ": the last that can be named is ", kMaxCpu);
  return value;
}

int read_number(const std::string& path) {
  int value = -1;
  std::ifstream(path) >> value;
  return value;
}

}  // namespace

std::vector<int> available_cpus() {
  CpuSet set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, CpuSet::kBytes, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu <= kMaxCpu; ++cpu) {
    if (set.has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

StatusOr<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-', 1);
    ASSIGN_OR_RETURN(const int first, parse_cpu(part.substr(0, dash)));
    int last = first;
    if (dash != std::string_view::npos) {
      ASSIGN_OR_RETURN(last, parse_cpu(part.substr(dash + 1)));
    }
    if (last < first) return invalid_argument("\"", part, "\" ends before it begins");
    for (int cpu = first; cpu <= last; ++cpu) {
      if (std::ranges::find(cpus, cpu) != cpus.end()) return invalid_argument("processor ", cpu, " is named twice");
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::string format_cpu_list(std::span<const int> cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += str_cat(text.empty() ? "" : ",", cpus[i]);
    if (end > i + 1) text += str_cat("-", cpus[end - 1]);
    i = end;
  }
  return text;
}

std::vector<int> spread_over_cores(std::vector<int> cpus, const std::string& folder) {
  std::map<std::pair<int, int>, int> num_seen;  // (package, core): how many of its processors came before
  std::vector<std::pair<int, int>> ranked;      // (how many came before, processor)
  for (const int cpu : cpus) {
    const std::string topology = str_cat(folder, "/cpu", cpu, "/topology/");
    const int core = read_number(topology + "core_id"), package = read_number(topology + "physical_package_id");
    if (core < 0) return cpus;
    ranked.emplace_back(num_seen[{package, core}]++, cpu);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<int, int>::first);
  for (size_t i = 0; i < cpus.size(); ++i) cpus[i] = ranked[i].second;
  return cpus;
}

bool pin_this_thread(int cpu) {
  CpuSet set;
  set.add(cpu);
  return sched_setaffinity(0, CpuSet::kBytes, set.get()) == 0;
}

bool may_pin_threads() {
  CpuSet set;
  return sched_getaffinity(0, CpuSet::kBytes, set.get()) == 0 && sched_setaffinity(0, CpuSet::kBytes, set.get()) == 0;
}

void AvoidedCpu::set(int cpu) {
  if (cpu == cpu_ || cpu > kMaxCpu) return;
  if (cpu < 0) {
    sched_setaffinity(0, CpuSet::kBytes, all_.get());
    cpu_ = -1;
    return;
  }
  if (cpu_ < 0 && sched_getaffinity(0, CpuSet::kBytes, all_.get()) != 0) return;
  CpuSet others = all_;
  others.remove(cpu);
  if (others.count() > 0 && sched_setaffinity(0, CpuSet::kBytes, others.get()) == 0) cpu_ = cpu;
}

}  // namespace transept

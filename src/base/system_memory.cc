#include "base/system_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace transept {
namespace {

std::optional<uint64_t> read_number(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // not there, or "max"
}

std::optional<uint64_t> meminfo(std::string_view wanted) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    if (key == wanted) return kib * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

uint64_t pages_bytes(int name) {
  return static_cast<uint64_t>(sysconf(name)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Status check_kv_memory(uint64_t wanted, uint64_t block_bytes, uint64_t total_memory) {
  if (wanted > total_memory) {
    return resource_exhausted("--kv-cache-memory: ", format_bytes(wanted), " is more than the ",
                              format_bytes(total_memory), " of memory that this machine has");
  }
  if (wanted / block_bytes > kMaxKvBlocks) {
    return resource_exhausted("--kv-cache-memory: ", format_bytes(wanted), " is ", wanted / block_bytes,
                              " blocks, more than the ", kMaxKvBlocks, " that can be counted: raise --block-size");
  }
  return ok_status();
}

uint64_t available_memory_bytes() {
  uint64_t available = meminfo("MemAvailable:").value_or(pages_bytes(_SC_AVPHYS_PAGES));
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (limit.has_value() && used.has_value()) available = std::min(available, *limit > *used ? *limit - *used : 0);
  return available;
}

uint64_t total_memory_bytes() {
  const uint64_t machine = meminfo("MemTotal:").value_or(pages_bytes(_SC_PHYS_PAGES));
  return std::min(machine, read_number("/sys/fs/cgroup/memory.max").value_or(machine));
}

uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace transept

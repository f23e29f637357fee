#include "server/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace transept {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The time of the machine's start, of /proc/stat: "btime 1700000000".
uint64_t boot_time() {
  constexpr std::string_view kName = "btime ";
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kName)) return number(std::string_view(line).substr(kName.size()));
  }
  return 0;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProcessStats read_process_stats() {
  ProcessStats stats;
  const std::string memory = first_line("/proc/self/statm");  // in pages: all, resident, ...
  if (const std::vector<std::string_view> parts = split(memory, ' '); parts.size() > 1) {
    stats.resident_bytes = number(parts[1]) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) ++stats.open_fds;
  if (stats.open_fds > 0) --stats.open_fds;  // the one that reads the folder
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    stats.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return stats;
}

double read_process_start_time() {
  // proc(5): field 22 of /proc/self/stat, in ticks since the machine's start. The name in field 2 may hold anything,
  // but what follows its last bracket are fields 3 on.
  constexpr size_t kStartTime = 22 - 3;
  const std::string line = first_line("/proc/self/stat");
  const size_t bracket = line.rfind(") ");
  if (bracket == std::string::npos) return 0;
  const std::vector<std::string_view> parts = split(std::string_view(line).substr(bracket + 2), ' ');
  if (parts.size() <= kStartTime) return 0;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(boot_time()) + static_cast<double>(number(parts[kStartTime])) / ticks_per_second;
}

}  // namespace transept

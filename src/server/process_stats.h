// What the system says of this process, for /metrics: the names that Prometheus' own clients use. Thread-safe.
#pragma once

#include <cstdint>

namespace transept {

struct ProcessStats {
  uint64_t resident_bytes = 0;
  int64_t open_fds = 0;
  double cpu_seconds = 0;
};

// What cannot be read is 0.
ProcessStats read_process_stats();
// Seconds since the epoch.
double read_process_start_time();

}  // namespace transept

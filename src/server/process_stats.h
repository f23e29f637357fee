// Reads the statistics of this process from the system, for /metrics. Thread-safe functions.
#pragma once

#include <cstdint>

namespace transept {

struct ProcessStats {
  uint64_t resident_bytes = 0;
  int64_t open_fds = 0;
  double cpu_seconds = 0;
};

// A value that cannot be read is 0.
ProcessStats read_process_stats();
// Returns seconds since the epoch; 0 if it cannot be read.
double read_process_start_time();

}  // namespace transept

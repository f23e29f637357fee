// How far a download is, on standard error: a bar with a rate on a terminal, a log line every few seconds elsewhere
// (none with --log-level warning). Nothing with --quiet or HF_HUB_DISABLE_PROGRESS_BARS. Thread-safe.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

#include "apps/progress.h"
#include "base/mutex.h"
#include "hub/transfer_rate.h"

namespace transept {

class FetchDisplay final {
 public:
  // From here on SIGINT and SIGTERM end the process with kExitInterrupted and a line that says how much has come: a
  // download that is cut is resumed by the same command, so nothing is left to do. At most one at a time.
  FetchDisplay(std::string name, bool is_quiet);
  // The signals mean what they meant before.
  ~FetchDisplay();
  FetchDisplay(const FetchDisplay&) = delete;
  FetchDisplay& operator=(const FetchDisplay&) = delete;

  void show(int64_t done, int64_t total);
  // Ends the bar, so that something else can be written.
  void clear();

 private:
  void watch();
  [[noreturn]] void end_interrupted();

  const std::string name_;
  const bool is_quiet_;
  Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  TransferRate rate_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_line_ ABSL_GUARDED_BY(mutex_);
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0, total_ ABSL_GUARDED_BY(mutex_) = 0;
  struct sigaction old_int_ {
  }, old_term_{};
  std::atomic<bool> is_over_ = false;
  std::thread watcher_;
};

}  // namespace transept

// How far a download is, on standard error: a bar with a rate on a terminal, a log line every few seconds elsewhere
// (none with --log-level warning). Nothing with --quiet or HF_HUB_DISABLE_PROGRESS_BARS. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "apps/progress.h"
#include "hub/transfer_rate.h"

namespace transept {

class FetchDisplay final {
 public:
  FetchDisplay(std::string name, bool is_quiet);

  void show(int64_t done, int64_t total);
  // Ends the bar, so that something else can be written.
  void clear() { progress_.clear(); }

 private:
  const std::string name_;
  const bool is_quiet_;
  Progress progress_;
  TransferRate rate_;
  TimePoint next_line_;
};

}  // namespace transept

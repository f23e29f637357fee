// What several files that are worked on at once have to say, in the order of the files: the first that has not ended is
// shown as it speaks, those behind it when their turn comes. Thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/progress.h"
#include "base/mutex.h"

namespace transept {

class OrderedConsole final {
 public:
  // Results and notes go to these (standard output and error), which must outlive it.
  OrderedConsole(std::FILE* results, std::FILE* notes) : results_(results), notes_(notes), progress_("s of audio") {}

  // Whole lines of file `index`, from 0. REQUIRES: it has not ended.
  void result(size_t index, std::string text) { say(index, results_, std::move(text)); }
  void note(size_t index, std::string text) { say(index, notes_, std::move(text)); }
  void end(size_t index);

  // Nothing more comes: shows what is still held back. After that, notes of all files are shown at once.
  void end_all();
  void note(std::string_view text);

  // As Progress::update; a negative `total` is not known.
  void show_progress(int64_t done, int64_t total, std::string_view rate);

  // Results could be written so far.
  bool is_ok() const;

 private:
  struct Slot {
    std::vector<std::pair<std::FILE*, std::string>> lines;
    bool has_ended = false;
  };

  void say(size_t index, std::FILE* to, std::string text);
  void write(std::FILE* to, std::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Slot& slot(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void show(Slot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::FILE* const results_;
  std::FILE* const notes_;
  mutable Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);  // from first_ on
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;        // is shown as it speaks
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept

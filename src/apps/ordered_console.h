// Prints the messages of several files that are processed concurrently, in the order of the files. The first file that
// has not ended prints at once; later files wait for their turn. Thread-safe.
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
  // Writes results and notes to these (standard output and error), which must outlive this object.
  OrderedConsole(std::FILE* results, std::FILE* notes) : results_(results), notes_(notes), progress_("s of audio") {}

  // Prints whole lines of file `index`, from 0. REQUIRES: the file has not ended.
  void result(size_t index, std::string text) { say(index, results_, std::move(text)); }
  void note(size_t index, std::string text) { say(index, notes_, std::move(text)); }
  void end(size_t index);

  // Prints all messages that are still held back; no file prints after that. The second note() is for notes about no
  // single file.
  void end_all();
  void note(std::string_view text);

  // See Progress::update. A negative `total` means unknown.
  void show_progress(int64_t done, int64_t total, std::string_view rate);

  // Whether all results so far could be written.
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
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;        // the file that prints at once
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept

// Ends the process if it does not end by itself in time: for one that has answered who waited, while a thread of it may
// compute for seconds yet.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace transept {

class EndWithin final {
 public:
  // After `timeout` a thread calls last_words() and ends the process, without destructors, with the exit code that it
  // returns. What last_words() refers to must outlive this.
  EndWithin(std::chrono::milliseconds timeout, std::function<int()> last_words);
  // In time: the process goes on. Waits for last_words() that have begun, so for the process's end.
  ~EndWithin();
  EndWithin(const EndWithin&) = delete;
  EndWithin& operator=(const EndWithin&) = delete;

 private:
  void run(std::chrono::steady_clock::time_point end);

  const std::function<int()> last_words_;
  Mutex mutex_;
  CondVar changed_;
  bool is_in_time_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace transept

// Threads that do what may take a while (parsing, tokenising, decoding media, building answers), so that I/O threads
// never do. First come, first served. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace transept {

class WorkPool final {
 public:
  explicit WorkPool(int num_threads);
  ~WorkPool() { stop(); }
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Never blocks. A task may post further ones. After stop() it runs at once, on the calling thread.
  void post(std::function<void()> task);
  // Does what is posted, then ends the threads. Idempotent; not from a task.
  void stop();
  size_t num_waiting() const;

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace transept

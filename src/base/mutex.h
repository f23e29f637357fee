// Mutual exclusion that the compiler checks: std::mutex and std::condition_variable with the attributes of clang's
// thread safety analysis. A member says by which mutex it is guarded (ABSL_GUARDED_BY), a function which it needs
// (ABSL_EXCLUSIVE_LOCKS_REQUIRED); clang's build (the asan preset) refuses what does not hold that. No other file
// includes <mutex> or <condition_variable>; std::call_once comes from here, too. Why not absl::Mutex:
// docs/decisions/0018-locks-checked-by-the-compiler.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace transept {

class CondVar;

// Thread-safe. Not recursive.
class ABSL_LOCKABLE Mutex final {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex from here to the end of the block.
class ABSL_SCOPED_LOCKABLE MutexLock final {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Where threads wait for what others change under a mutex. Waits end for no reason, too, so they stand in loops:
//
//   while (queue_.empty()) changed_.wait(mutex_);
//
// (A condition as a lambda would be a function of its own to the analysis, which holds nothing.) Thread-safe.
class CondVar final {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Lets go of the mutex while it waits.
  void wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();  // the caller's again
  }
  // The same, until `end` at the latest. False: that has come.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = changed_.wait_until(lock, end);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace transept

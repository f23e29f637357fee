// Mutexes that the compiler checks: std::mutex and std::condition_variable with the attributes of clang's thread safety
// analysis. A member names its mutex (ABSL_GUARDED_BY), a function the mutex that its caller holds
// (ABSL_EXCLUSIVE_LOCKS_REQUIRED); clang's build (the asan preset) rejects violations. No other file includes
// <mutex> or <condition_variable>; std::call_once also comes from here. For the choice against absl::Mutex see
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

// Locks a mutex for the rest of the block.
class ABSL_SCOPED_LOCKABLE MutexLock final {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable. Waits can wake spuriously, so they stand in loops:
//
//   while (queue_.empty()) changed_.wait(mutex_);
//
// There is no overload with a predicate: the analysis takes a lambda for a function that holds no mutex. Thread-safe.
class CondVar final {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Releases the mutex while it waits; holds it again on return.
  void wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();  // the caller's again
  }
  // As wait(), until `end` at the latest. Returns false on timeout.
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

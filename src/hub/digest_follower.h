// The SHA-256 of a file that grows, computed by a thread of its own that reads behind the writer: hashing costs a
// download no time of its own, and what an earlier run left is hashed as well. Owned and called by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace transept {

class DigestFollower final {
 public:
  // Reads from the beginning of `fd`, which outlives this.
  explicit DigestFollower(int fd);
  ~DigestFollower();
  DigestFollower(const DigestFollower&) = delete;
  DigestFollower& operator=(const DigestFollower&) = delete;

  // The file has its final bytes up to `size`, which never falls.
  void advance(int64_t size);
  // Waits for the thread. Returns 64 hex digits. Errors (kInvalidArgument): the file cannot be read.
  StatusOr<std::string> finish();

 private:
  void run();
  void end(bool is_abandoned);
  // Waits until there is a piece after `done`, or the rest. Returns the end of what there is; `done` if there will be
  // no more.
  int64_t wait_beyond(int64_t done);

  const int fd_;
  Mutex mutex_;
  CondVar changed_;
  int64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t read_ ABSL_GUARDED_BY(mutex_) = 0;  // when the thread last asked for more
  bool is_complete_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  StatusOr<std::string> digest_;  // the thread's until it has ended
  std::thread thread_;
};

}  // namespace transept

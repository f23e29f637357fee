// The lock of a blob's download, in the form of Python's filelock: flock(2) on a file that stays. Owns the descriptor;
// releases the lock at its end. Used by one thread.
#pragma once

#include <string>

#include "base/status.h"
#include "hub/fetch_control.h"

namespace transept {

class BlobLock final {
 public:
  // Waits while another process, or another thread of this one, holds the lock. Errors: kCancelled after
  // control.stop(); kInvalidArgument naming the path. A file system without flock locks nothing, and is no error.
  static StatusOr<BlobLock> take(const std::string& path, FetchControl& control);
  ~BlobLock();
  BlobLock(BlobLock&& other) noexcept;
  BlobLock& operator=(BlobLock&&) = delete;

 private:
  explicit BlobLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace transept

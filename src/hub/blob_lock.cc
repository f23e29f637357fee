#include "hub/blob_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace transept {
namespace {

constexpr std::chrono::milliseconds kPoll{50};
constexpr int kSaidPolls = 40;
constexpr mode_t kMode = 0664;  // huggingface_hub's: a group may share a cache

int open_lock(const char* path) {
  const int created = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (created < 0) return ::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  ::fchmod(created, kMode);  // whatever the mask is
  return created;
}

// Whether a lock on the descriptor is one on the path: its file may have been removed in between.
bool is_current(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

StatusOr<BlobLock> BlobLock::take(const std::string& path, FetchControl& control) {
  for (int polls = 0;; ++polls) {
    if (polls == kSaidPolls) log_info("waiting for another process that fetches the same file (", path, ")");
    const int fd = open_lock(path.c_str());
    if (fd < 0 && errno == ENOENT && ::access(path.substr(0, path.rfind('/')).c_str(), F_OK) == 0) continue;
    if (fd < 0) return invalid_argument(path, ": cannot be opened: ", std::strerror(errno));
    BlobLock lock(fd);
    const bool is_taken = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_taken && errno != EWOULDBLOCK && errno != EACCES && errno != EINTR) return lock;
    if (is_taken && is_current(fd)) return lock;
    if (!is_taken && !control.wait(kPoll)) return absl::CancelledError("stopped");
  }
}

BlobLock::~BlobLock() {
  if (fd_ >= 0) ::close(fd_);
}

BlobLock::BlobLock(BlobLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

}  // namespace transept

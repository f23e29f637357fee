#include "hub/digest_follower.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/content_digest.h"

namespace transept {
namespace {

constexpr int64_t kPieceBytes = 512 * 1024;  // stays in a core's cache

}  // namespace

DigestFollower::DigestFollower(int fd) : fd_(fd), digest_(std::string()), thread_([this] { run(); }) {}

DigestFollower::~DigestFollower() { end(/*is_abandoned=*/true); }

void DigestFollower::end(bool is_abandoned) {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    is_complete_ = true;
    is_abandoned_ = is_abandoned;
    changed_.notify_one();
  }
  thread_.join();
}

void DigestFollower::advance(int64_t size) {
  const MutexLock lock(mutex_);
  size_ = size;
  if (size_ - read_ >= kPieceBytes) changed_.notify_one();  // each piece that comes would be too often
}

StatusOr<std::string> DigestFollower::finish() {
  end(/*is_abandoned=*/false);
  return digest_;
}

int64_t DigestFollower::wait_beyond(int64_t done) {
  const MutexLock lock(mutex_);
  read_ = done;
  while (size_ - done < kPieceBytes && !is_complete_) changed_.wait(mutex_);
  return is_abandoned_ ? done : size_;
}

void DigestFollower::run() {
  DigestBuilder digest;
  std::vector<std::byte> buffer(kPieceBytes);
  int64_t done = 0;
  for (int64_t end = wait_beyond(0); end > done; end = wait_beyond(done)) {
    while (done < end) {
      const auto wanted = static_cast<size_t>(std::min(end - done, kPieceBytes));
      const ssize_t count = ::pread(fd_, buffer.data(), wanted, done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        digest_ = invalid_argument("cannot be read back: ", count < 0 ? std::strerror(errno) : "it has become shorter");
        return;
      }
      digest.add_bytes(std::span(buffer).first(static_cast<size_t>(count)));
      done += count;
    }
  }
  digest_ = digest_hex(digest.finish());
}

}  // namespace transept

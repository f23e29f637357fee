#include "hub/fetch_blob.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/disk_sync.h"
#include "hub/blob_lock.h"
#include "hub/digest_follower.h"
#include "hub/whole_file.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// libcurl brings 16 KiB at a time; a file that grows by larger pieces costs the kernel half of the time.
constexpr size_t kWriteBytes = 512 * 1024;
constexpr std::chrono::milliseconds kWriteEvery{100};   // at least, so a run that is killed has lost little
constexpr int64_t kWriteBackBytes = int64_t{32} << 20;  // the disk begins to write so early, and fsync waits less

// The size of a regular file; unset: there is none.
std::optional<int64_t> size_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const uintmax_t size = fs::file_size(path, error);
  return error ? std::nullopt : std::optional(static_cast<int64_t>(size));
}

bool is_there(const CacheRepo& cache, const FetchTask& task) {
  return is_whole_file(cache.blob(task.remote.etag), {task.remote.size, is_sha256(task.remote.etag)});
}

// ETAG.incomplete, and what of it is known. Owns the descriptor.
class PartialBlob final {
 public:
  static StatusOr<std::unique_ptr<PartialBlob>> open(const std::string& path, const FetchTask& task,
                                                     FetchControl& control) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return invalid_argument(path, ": cannot be opened: ", std::strerror(errno));
    std::unique_ptr<PartialBlob> blob(new PartialBlob(path, fd, task, control));
    struct stat status {};
    if (::fstat(fd, &status) != 0) return invalid_argument(path, ": cannot be read: ", std::strerror(errno));
    const bool may_resume = blob->is_checked_ && status.st_size <= task.remote.size.value_or(status.st_size);
    if (!may_resume) {
      RETURN_IF_ERROR(blob->restart());
    } else {
      control.add_done(status.st_size);
      blob->grow(status.st_size);
    }
    return blob;
  }
  ~PartialBlob() {
    follower_.reset();
    ::close(fd_);
  }

  int64_t size() const { return size_; }  // without what is not flushed
  bool is_whole() const { return task_.remote.size.has_value() && size_ == *task_.remote.size; }

  Status restart() {
    follower_.reset();
    if (::ftruncate(fd_, 0) != 0) return failed(errno);
    control_.add_done(-come());
    size_ = written_back_ = 0;
    buffered_ = 0;
    if (is_checked_) follower_ = std::make_unique<DigestFollower>(fd_);
    return ok_status();
  }

  // Takes the next bytes, which are in the file soon, and after flush() for sure.
  Status append(std::span<const std::byte> bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    if (task_.remote.size.has_value() && size > *task_.remote.size - come()) {
      return absl::DataLossError(
          str_cat(task_.file, ": the server sends more than the ", *task_.remote.size, " bytes that it promised"));
    }
    control_.add_received(size);
    control_.add_done(size);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), buffer_.size() - buffered_);
      std::memcpy(buffer_.data() + buffered_, bytes.data(), count);
      buffered_ += count;
      bytes = bytes.subspan(count);
      if (buffered_ == buffer_.size()) RETURN_IF_ERROR(flush());
    }
    return std::chrono::steady_clock::now() - last_write_ < kWriteEvery ? ok_status() : flush();
  }

  Status flush() {
    std::span<const std::byte> bytes(buffer_.data(), std::exchange(buffered_, 0));
    last_write_ = std::chrono::steady_clock::now();
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), size_);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed(errno);
      bytes = bytes.subspan(static_cast<size_t>(count));
      grow(count);
    }
    if (size_ - written_back_ >= kWriteBackBytes) {
      ::sync_file_range(fd_, written_back_, size_ - written_back_, SYNC_FILE_RANGE_WRITE);
      written_back_ = size_;
    }
    return ok_status();
  }

  // Of the whole file.
  Status check() {
    if (task_.remote.size.has_value() && size_ != *task_.remote.size) {
      return absl::DataLossError(
          str_cat(task_.file, ": ", size_, " bytes came, and the hub promised ", *task_.remote.size));
    }
    if (follower_ == nullptr) return ok_status();
    const StatusOr<std::string> digest = std::exchange(follower_, nullptr)->finish();
    if (!digest.ok()) return with_prefix(digest.status(), path_);
    if (*digest == task_.remote.etag) return ok_status();
    return absl::DataLossError(str_cat(task_.file, ": the SHA-256 of what came is ", *digest, ", and the hub promised ",
                                       task_.remote.etag, ": the file is damaged on its way or at the hub"));
  }

  Status move_to(const std::string& blob) {
    if (::fsync(fd_) != 0) return failed(errno);
    if (::rename(path_.c_str(), blob.c_str()) != 0) return failed(errno);
    return put_on_disk(fs::path(blob).parent_path().string());
  }

 private:
  PartialBlob(std::string path, int fd, const FetchTask& task, FetchControl& control)
      : path_(std::move(path)), fd_(fd), task_(task), control_(control), is_checked_(is_sha256(task.remote.etag)) {
    if (is_checked_) follower_ = std::make_unique<DigestFollower>(fd_);
  }

  int64_t come() const { return size_ + static_cast<int64_t>(buffered_); }

  void grow(int64_t count) {
    size_ += count;
    if (follower_ != nullptr) follower_->advance(size_);
  }

  Status failed(int error) const {
    if (error == ENOSPC || error == EDQUOT) {
      return resource_exhausted(path_, ": the disk is full: free some space and start again; what has come is kept");
    }
    return invalid_argument(path_, ": cannot be written: ", std::strerror(error));
  }

  const std::string path_;
  const int fd_;
  const FetchTask& task_;
  FetchControl& control_;
  const bool is_checked_;  // by its digest, so it can be resumed
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kWriteBytes);
  size_t buffered_ = 0;  // of buffer_: come, and not written
  std::chrono::steady_clock::time_point last_write_;
  int64_t size_ = 0, written_back_ = 0;  // of the file
  std::unique_ptr<DigestFollower> follower_;
};

// All bytes, in as many tries as it takes while some come.
Status fill(HubClient& client, const RepoName& repo, const std::string& commit, const FetchTask& task,
            PartialBlob& blob) {
  const auto on_restart = [&] { return blob.restart(); };
  const auto on_bytes = [&](std::span<const std::byte> bytes) { return blob.append(bytes); };
  for (int failures = 0; !blob.is_whole();) {
    const int64_t before = blob.size();
    Status status = client.read(repo, commit, task.file, before, {on_restart, on_bytes});
    Status flushed = blob.flush();
    if (!flushed.ok()) status = std::move(flushed);
    // An answer that ends by its own account is not cut: the server has another file than the hub promised.
    if (status.ok()) return blob.is_whole() || !task.remote.size.has_value() ? ok_status() : blob.check();
    if (absl::IsOutOfRange(status)) return absl::DataLossError(error_message(status));
    if (!absl::IsUnavailable(status)) return status;
    failures = blob.size() > before ? 1 : failures + 1;
    if (failures >= client.max_tries()) return status;
    RETURN_IF_ERROR(client.wait_after(status, failures));
  }
  return ok_status();
}

Status fetch(HubClient& client, const RepoName& repo, const CacheRepo& cache, const std::string& commit,
             const FetchTask& task) {
  const std::string path = cache.incomplete(task.remote.etag);
  for (int i = 0;; ++i) {
    ASSIGN_OR_RETURN(const std::unique_ptr<PartialBlob> blob, PartialBlob::open(path, task, client.control()));
    Status status = fill(client, repo, commit, task, *blob);
    if (status.ok()) status = blob->check();
    if (status.ok()) return blob->move_to(cache.blob(task.remote.etag));
    // Bytes that are wrong are not resumed. They may have been wrong before this run.
    if (!absl::IsDataLoss(status)) return status;
    RETURN_IF_ERROR(blob->restart());
    if (i == 1) {
      ::unlink(path.c_str());
      return with_prefix(status, repo.id);
    }
  }
}

}  // namespace

int64_t missing_bytes(const CacheRepo& cache, const FetchTask& task) {
  const int64_t size = task.remote.size.value_or(0);
  if (is_there(cache, task)) return 0;
  const int64_t partial =
      is_sha256(task.remote.etag) ? size_of(cache.incomplete(task.remote.etag)).value_or(0) : int64_t{0};
  return partial <= size ? size - partial : size;
}

Status fetch_blob(HubClient& client, const RepoName& repo, const CacheRepo& cache, const std::string& commit,
                  const FetchTask& task) {
  ASSIGN_OR_RETURN(const BlobLock lock, BlobLock::take(cache.lock(task.remote.etag), client.control()));
  if (is_there(cache, task)) {
    client.control().add_done(task.remote.size.value_or(0));
  } else {
    RETURN_IF_ERROR(fetch(client, repo, cache, commit, task));
  }
  return cache.link(commit, task.file, task.remote.etag);
}

}  // namespace transept

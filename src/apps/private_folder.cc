#include "apps/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/content_digest.h"
#include "base/quoted.h"

namespace transept {
namespace {

static_assert(PrivateFolder::kMaxSocketPathBytes == sizeof(sockaddr_un::sun_path) - 1);

constexpr std::string_view kPrefix = "transept-";
constexpr std::string_view kDrawn = "XXXXXX";  // mkdtemp(3)

Status write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::UnavailableError(str_cat(path, ": cannot be written: ", std::strerror(errno)));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return ok_status();
}

// -1: it is not this user's, not old enough, or its owner has it.
int lock_of_left(const std::filesystem::path& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return -1;
  if (info.st_uid != ::geteuid() || (info.st_mode & 0777) != 0700) return -1;
  const std::string owner = str_cat(folder.string(), "/", PrivateFolder::kOwnerFile);
  const int fd = ::open(owner.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const bool is_old = is_file && ::time(nullptr) - info.st_mtime >= PrivateFolder::kLeastAge.count();
  if (is_old && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

// Folders of owners that were killed.
void remove_left(const std::string& parent) {
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(parent, ignored);
       !ignored && entry != std::filesystem::end(entry); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDrawn.size()) continue;
    const int lock = lock_of_left(entry->path());
    if (lock < 0) continue;
    std::error_code stays;
    std::filesystem::remove_all(entry->path(), stays);
    ::close(lock);
  }
}

}  // namespace

StatusOr<PrivateFolder> PrivateFolder::create(std::span<const std::string> parents, std::string_view longest_name) {
  std::string reasons;
  for (const std::string& parent : parents) {
    std::string path = parent;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    path += str_cat("/", kPrefix, kDrawn);
    const size_t size = path.size() + 1 + longest_name.size();
    std::string reason;
    if (!parent.starts_with('/')) {
      reason = "is no absolute path";
    } else if (size > kMaxSocketPathBytes) {
      reason =
          str_cat("is too long: sockets in it have paths of ", size, " bytes, the system allows ", kMaxSocketPathBytes);
    } else {
      remove_left(parent);
      StatusOr<PrivateFolder> made = make(std::move(path));
      if (made.ok()) return made;
      reason = error_message(made.status());
    }
    reasons += str_cat(reasons.empty() ? "" : "; ", printable(parent), ": ", reason);
  }
  return absl::UnavailableError(str_cat("no folder for sockets (TMPDIR names another): ", reasons));
}

StatusOr<PrivateFolder> PrivateFolder::make(std::string path) {
  if (::mkdtemp(path.data()) == nullptr) return absl::UnavailableError(std::strerror(errno));  // of mode 700
  PrivateFolder folder(std::move(path), -1);
  const std::string owner = str_cat(folder.path_, "/", kOwnerFile);
  folder.lock_ = ::open(owner.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (folder.lock_ < 0 || ::flock(folder.lock_, LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(str_cat(owner, ": ", std::strerror(errno)));
  }
  return folder;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

Status PrivateFolder::write(std::string_view name, std::string_view content) const {
  const std::string path = str_cat(path_, "/", name);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return absl::UnavailableError(str_cat(path, ": cannot be written: ", std::strerror(errno)));
  Status status = write_all(fd, path, content);
  ::close(fd);
  return status;
}

std::vector<std::string> runtime_folders() {
  std::vector<std::string> folders;
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') folders.emplace_back(value);
  }
  folders.emplace_back("/tmp");
  return folders;
}

StatusOr<std::string> random_secret() {
  ContentDigest secret;
  // Up to 256 bytes come whole, and no signal interrupts that (getrandom(2)).
  if (::getrandom(secret.bytes.data(), secret.bytes.size(), 0) != static_cast<ssize_t>(secret.bytes.size())) {
    return absl::UnavailableError(str_cat("no random bytes: ", std::strerror(errno)));
  }
  return digest_hex(secret);
}

}  // namespace transept

#include "apps/private_folder.h"

#include <fcntl.h>
#include <sys/random.h>
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

constexpr std::string_view kPattern = "/transept-XXXXXX";

Status write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::UnavailableError(str_cat(path, ": cannot be written: ", std::strerror(errno)));
    content.remove_prefix(static_cast<size_t>(written));
  }
  return ok_status();
}

}  // namespace

StatusOr<PrivateFolder> PrivateFolder::create(std::span<const std::string> parents, std::string_view longest_name) {
  std::string reasons;
  for (const std::string& parent : parents) {
    std::string path = parent;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    path += kPattern;
    const size_t size = path.size() + 1 + longest_name.size();
    std::string reason;
    if (!parent.starts_with('/')) {
      reason = "is no absolute path";
    } else if (size > kMaxSocketPathBytes) {
      reason =
          str_cat("is too long: sockets in it have paths of ", size, " bytes, the system allows ", kMaxSocketPathBytes);
    } else if (::mkdtemp(path.data()) != nullptr) {  // of mode 700
      return PrivateFolder(std::move(path));
    } else {
      reason = std::strerror(errno);
    }
    reasons += str_cat(reasons.empty() ? "" : "; ", printable(parent), ": ", reason);
  }
  return absl::UnavailableError(str_cat("no folder for sockets (TMPDIR names another): ", reasons));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

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

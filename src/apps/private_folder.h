// A folder that only this user can open, with a name of its own, for sockets and secrets of processes that belong
// together. Removed at the end, with all that is in it. One whose owner was killed is removed by the next create() in
// the same parent: owners hold a lock on a file in it. Not thread-safe.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class PrivateFolder final {
 public:
  // The file that the owner has locked.
  static constexpr std::string_view kOwnerFile = ".owner";
  // A folder that is younger is never taken for one that was left.
  static constexpr std::chrono::seconds kLeastAge{60};
  // The longest path of a socket in the file system (sun_path, without the zero byte that ends it).
  static constexpr size_t kMaxSocketPathBytes = 107;

  // Makes it in the first of `parents` that takes it, and in which the socket `longest_name` has a path that is short
  // enough. Errors: kUnavailable; why not in each.
  static StatusOr<PrivateFolder> create(std::span<const std::string> parents, std::string_view longest_name);
  ~PrivateFolder();
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Only this user can read it. Errors: kUnavailable.
  Status write(std::string_view name, std::string_view content) const;

 private:
  static StatusOr<PrivateFolder> make(std::string path);
  PrivateFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;  // empty: moved from
  int lock_;          // descriptor of kOwnerFile; -1: moved from
};

// $XDG_RUNTIME_DIR, $TMPDIR and /tmp, without those that are not set.
std::vector<std::string> runtime_folders();

// 32 random bytes of the system, as 64 hexadecimal digits. Errors: kUnavailable.
StatusOr<std::string> random_secret();

}  // namespace transept

#include "hub/cache_layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/disk_sync.h"
#include "base/input_file.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModels = "models--", kSeparator = "--";
// The file by which backup programs know a cache (https://bford.info/cachedir/), in huggingface_hub's words: whichever
// program comes first writes the same bytes.
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

std::string folder_name(std::string_view id) {
  const size_t slash = id.find('/');
  return str_cat(kModels, id.substr(0, slash), kSeparator, id.substr(slash + 1));
}

Status make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? invalid_argument(path, ": cannot be made: ", error.message()) : ok_status();
}

// Whole or not at all, for whoever reads meanwhile; unique among processes and threads.
Status write_whole(const std::string& path, std::string_view content) {
  static std::atomic<uint64_t> counter = 0;
  RETURN_IF_ERROR(make_folder(fs::path(path).parent_path().string()));
  const std::string partial = str_cat(path, ".", static_cast<int64_t>(::getpid()), "-", counter++, ".tmp");
  std::ofstream file(partial, std::ios::binary);
  file << content;
  file.close();
  Status status = file ? put_on_disk(partial) : invalid_argument(partial, ": cannot be written");
  if (status.ok() && ::rename(partial.c_str(), path.c_str()) != 0) {
    status = invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  }
  if (!status.ok()) ::unlink(partial.c_str());
  return status;
}

}  // namespace

CacheRepo::CacheRepo(std::string cache_dir, std::string id)
    : cache_dir_(std::move(cache_dir)), id_(std::move(id)), folder_(str_cat(cache_dir_, "/", folder_name(id_))) {}

std::string CacheRepo::locks_folder() const { return str_cat(cache_dir_, "/.locks/", folder_name(id_)); }

std::optional<std::string> CacheRepo::commit_of(const std::string& revision) const {
  std::error_code error;
  if (fs::is_regular_file(ref(revision), error)) {
    const StatusOr<std::string> text = read_file(ref(revision), 1024);
    const std::string commit = text.ok() ? std::string(trim(*text)) : "";
    if (is_commit(commit)) return commit;
  }
  return is_commit(revision) ? std::optional<std::string>(revision) : std::nullopt;
}

std::optional<std::vector<ListedFile>> CacheRepo::read_tree(std::string_view commit) const {
  const StatusOr<std::string> text = read_file(tree(commit), kMaxAnswerBytes);
  if (!text.ok()) return std::nullopt;
  StatusOr<std::vector<ListedFile>> files = parse_tree_copy(*text);
  return files.ok() ? std::optional(std::move(files).value()) : std::nullopt;
}

bool CacheRepo::has_file(std::string_view commit, std::string_view file) const {
  std::error_code error;
  return fs::is_regular_file(pointer(commit, file), error);
}

bool CacheRepo::is_marked_missing(std::string_view commit, std::string_view file) const {
  std::error_code error;
  return fs::is_regular_file(no_exist(commit, file), error);
}

Status CacheRepo::make_folders(std::string_view commit) const {
  RETURN_IF_ERROR(make_folder(blobs_folder()));
  RETURN_IF_ERROR(make_folder(snapshot(commit)));
  RETURN_IF_ERROR(make_folder(locks_folder()));
  const std::string tag = cache_dir_ + "/CACHEDIR.TAG";
  std::error_code error;
  return fs::exists(tag, error) ? ok_status() : write_whole(tag, kCacheTag);
}

Status CacheRepo::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit || commit_of(revision) == commit) return ok_status();
  return write_whole(ref(revision), commit);
}

Status CacheRepo::write_tree(std::string_view commit, std::vector<ListedFile> files) const {
  return write_whole(tree(commit), tree_copy(std::move(files)));
}

Status CacheRepo::mark_missing(std::string_view commit, std::string_view file) const {
  const std::string path = no_exist(commit, file);
  std::error_code error;
  return fs::exists(path, error) ? ok_status() : write_whole(path, "");
}

Status CacheRepo::link(std::string_view commit, std::string_view file, std::string_view etag) const {
  const std::string path = pointer(commit, file), target = str_cat("../../blobs/", etag);
  for (int i = 0; i < 2; ++i) {
    if (::symlink(target.c_str(), path.c_str()) == 0) return ok_status();
    if (errno != EEXIST) break;
    std::error_code error;
    if (fs::read_symlink(path, error) == target) return ok_status();
    ::unlink(path.c_str());
  }
  return invalid_argument(path, ": cannot be linked to ", target, ": ", std::strerror(errno),
                          " (the cache's file system must have symbolic links)");
}

std::optional<std::string> repo_id_of_folder(std::string_view name) {
  if (!name.starts_with(kModels)) return std::nullopt;
  name.remove_prefix(kModels.size());
  std::string id(name);
  const size_t separator = id.find(kSeparator);
  if (separator == std::string::npos) return std::nullopt;
  id.replace(separator, kSeparator.size(), "/");
  return check_repo_id(id).ok() ? std::optional(std::move(id)) : std::nullopt;
}

}  // namespace transept

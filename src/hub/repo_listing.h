// What a repository holds at a commit: the hub's answers about it, and the copy of such an answer in the cache
// (trees/COMMIT.json, as huggingface_hub 2 writes it). The bytes are untrusted: every path is checked
// (hub/repo_name.h). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/whole_file.h"

namespace transept {

inline constexpr size_t kMaxListedFiles = 200'000;
inline constexpr size_t kMaxAnswerBytes = size_t{64} << 20;  // of one JSON answer

struct ListedFile {
  std::string path;
  int64_t size = 0;
  std::string blob_id;                    // the file's object id in git
  std::optional<std::string> lfs_sha256;  // only of large files
  std::optional<int64_t> lfs_size;
  std::optional<std::string> xet_hash;

  // Bytes of the file itself: `size` may be that of its pointer.
  int64_t content_size() const { return lfs_size.value_or(size); }
  HubSize hub_size() const { return {content_size(), lfs_size.has_value()}; }
};

struct RepoInfo {
  std::string commit;
  std::vector<std::string> paths;  // of its siblings
};

// All errors are kInvalidArgument and name the field: no JSON of the expected form, a number below 0, a commit that is
// no commit, a path or a name that is refused, too many files.
StatusOr<RepoInfo> parse_repo_info(std::string_view json);
// One page of /tree; folders are left out.
StatusOr<std::vector<ListedFile>> parse_tree_page(std::string_view json);

// The cache's copy. parse_tree_copy also refuses another format_version.
StatusOr<std::vector<ListedFile>> parse_tree_copy(std::string_view json);
// The bytes that huggingface_hub writes.
std::string tree_copy(std::vector<ListedFile> files);

}  // namespace transept

// Where huggingface_hub's cache has what (version 2.4, file_download.py), and the writing of its small files:
//
//   CACHE/CACHEDIR.TAG
//   CACHE/.locks/models--ORG--NAME/ETAG.lock        flock(2): one download of a blob at a time
//   CACHE/models--ORG--NAME/blobs/ETAG              the bytes; ETAG.incomplete while they come
//   CACHE/models--ORG--NAME/refs/REVISION           the commit of a branch or tag, without a line's end
//   CACHE/models--ORG--NAME/snapshots/COMMIT/FILE   a relative link to ../../blobs/ETAG
//   CACHE/models--ORG--NAME/.no_exist/COMMIT/FILE   empty: the commit has no such file
//   CACHE/models--ORG--NAME/trees/COMMIT.json       what the commit holds (hub/repo_listing.h)
//
// A value. Several threads and processes may write one cache: every file appears whole, by a rename or a link.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"

namespace transept {

class CacheRepo final {
 public:
  // `id` passes check_repo_id. The folder need not exist.
  CacheRepo(std::string cache_dir, std::string id);

  const std::string& id() const { return id_; }
  const std::string& folder() const { return folder_; }
  std::string locks_folder() const;
  std::string blobs_folder() const { return folder_ + "/blobs"; }
  std::string blob(std::string_view etag) const { return str_cat(folder_, "/blobs/", etag); }
  std::string incomplete(std::string_view etag) const { return blob(etag) + ".incomplete"; }
  std::string lock(std::string_view etag) const { return str_cat(locks_folder(), "/", etag, ".lock"); }
  std::string snapshot(std::string_view commit) const { return str_cat(folder_, "/snapshots/", commit); }
  std::string pointer(std::string_view commit, std::string_view file) const {
    return str_cat(snapshot(commit), "/", file);
  }
  std::string ref(std::string_view revision) const { return str_cat(folder_, "/refs/", revision); }
  std::string no_exist(std::string_view commit, std::string_view file) const {
    return str_cat(folder_, "/.no_exist/", commit, "/", file);
  }
  std::string tree(std::string_view commit) const { return str_cat(folder_, "/trees/", commit, ".json"); }

  // The commit that a revision means here: itself, or what refs say. Unset: neither, or no commit stands there.
  std::optional<std::string> commit_of(const std::string& revision) const;
  // The copy of the commit's listing. Unset: there is none, or none that can be read.
  std::optional<std::vector<ListedFile>> read_tree(std::string_view commit) const;
  // Whether the pointer leads to a file.
  bool has_file(std::string_view commit, std::string_view file) const;
  bool is_marked_missing(std::string_view commit, std::string_view file) const;

  // Makes the folders of blobs, the snapshot and locks, and the cache's tag. All errors of the functions below
  // (kInvalidArgument) name the path.
  Status make_folders(std::string_view commit) const;
  // Nothing if the revision is the commit itself, or the ref has it.
  Status write_ref(const std::string& revision, const std::string& commit) const;
  Status write_tree(std::string_view commit, std::vector<ListedFile> files) const;
  Status mark_missing(std::string_view commit, std::string_view file) const;
  // Lets the pointer lead to the blob, whatever it was.
  Status link(std::string_view commit, std::string_view file, std::string_view etag) const;

 private:
  std::string cache_dir_, id_, folder_;
};

// The id of a folder's name, "models--ORG--NAME". Unset: it is no model's.
std::optional<std::string> repo_id_of_folder(std::string_view name);

}  // namespace transept

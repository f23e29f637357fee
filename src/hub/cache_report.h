// What the cache holds of models, and removal from it. Functions over files: thread-safe, but a download that runs
// meanwhile may lose what is removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/cache_layout.h"

namespace transept {

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;  // branches and tags that mean it, sorted
  std::string snapshot;           // the folder
  int64_t num_bytes = 0;          // of its files; a blob that it links to twice counts once
  int64_t num_files = 0;
};

struct CachedRepo {
  std::string id;
  std::string folder;
  int64_t num_bytes = 0;                  // of its blobs, those of no revision included
  int64_t num_partial_bytes = 0;          // of files that have not come whole
  std::vector<CachedRevision> revisions;  // by commit
};

// Every model's folder, by id. A cache that is not there holds none. Errors (kInvalidArgument): it cannot be listed.
StatusOr<std::vector<CachedRepo>> list_cache(const std::string& cache_dir);
// Errors: kNotFound: the cache has no folder of this model.
StatusOr<CachedRepo> read_cached_repo(const CacheRepo& repo);

struct Removal {
  std::vector<std::string> paths;  // files and folders, in the order of removal
  int64_t num_bytes = 0;           // that become free
  bool is_whole_repo = false;
};

// What to remove for one revision, or for all (`commit` unset): its snapshot, refs, notes and listing, and blobs to
// which no other revision links; all of the repository's folder and locks if no other revision is left.
StatusOr<Removal> plan_removal(const CacheRepo& repo, const std::optional<std::string>& commit);
// Errors (kInvalidArgument): a path that cannot be removed.
Status remove(const Removal& removal);

}  // namespace transept

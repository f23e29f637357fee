#include "hub/cache_report.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartialSuffix = ".incomplete";

// Every entry below a folder that is not followed through links. A folder that is not there has none.
template <typename Visit>
Status for_each_below(const std::string& folder, const Visit& visit) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return ok_status();
  fs::recursive_directory_iterator at(folder, error), end;
  for (; !error && at != end; at.increment(error)) visit(*at);
  return error ? invalid_argument(folder, ": cannot be listed: ", error.message()) : ok_status();
}

// Follows links: a blob may be one into the cache's store of shared blobs.
int64_t size_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// The blob that an entry of a snapshot links to; "" if it is no link into the repository's blobs.
std::string blob_of(const CacheRepo& repo, const fs::path& entry) {
  std::error_code error;
  const fs::path target = fs::read_symlink(entry, error);
  if (error) return "";
  const fs::path whole = (entry.parent_path() / target).lexically_normal();
  return whole.parent_path() == fs::path(repo.blobs_folder()).lexically_normal() ? whole.filename().string() : "";
}

StatusOr<std::map<std::string, std::vector<std::string>>> refs_by_commit(const CacheRepo& repo) {
  std::map<std::string, std::vector<std::string>> refs;
  RETURN_IF_ERROR(for_each_below(repo.folder() + "/refs", [&](const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error) || entry.path().extension() == ".tmp") return;
    const std::string name = entry.path().lexically_relative(repo.folder() + "/refs").string();
    if (const auto commit = repo.commit_of(name)) refs[*commit].push_back(name);
  }));
  for (auto& [commit, names] : refs) std::sort(names.begin(), names.end());
  return refs;
}

StatusOr<std::set<std::string>> commits_of(const CacheRepo& repo) {
  std::set<std::string> commits;
  std::error_code error;
  for (fs::directory_iterator at(repo.folder() + "/snapshots", error), end; !error && at != end; at.increment(error)) {
    if (is_commit(at->path().filename().string())) commits.insert(at->path().filename().string());
  }
  return commits;
}

StatusOr<std::set<std::string>> blobs_of(const CacheRepo& repo, const std::string& commit) {
  std::set<std::string> blobs;
  RETURN_IF_ERROR(for_each_below(repo.snapshot(commit), [&](const fs::directory_entry& entry) {
    if (std::string blob = blob_of(repo, entry.path()); !blob.empty()) blobs.insert(std::move(blob));
  }));
  return blobs;
}

StatusOr<CachedRevision> read_revision(const CacheRepo& repo, const std::string& commit) {
  CachedRevision revision;
  revision.commit = commit;
  revision.snapshot = repo.snapshot(commit);
  std::set<std::string> seen;
  RETURN_IF_ERROR(for_each_below(revision.snapshot, [&](const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error)) return;
    ++revision.num_files;
    const std::string blob = blob_of(repo, entry.path());
    if (blob.empty() || seen.insert(blob).second) revision.num_bytes += size_of(entry.path());
  }));
  return revision;
}

}  // namespace

StatusOr<CachedRepo> read_cached_repo(const CacheRepo& repo) {
  std::error_code error;
  if (!fs::is_directory(repo.folder(), error)) return not_found(repo.folder(), ": no such folder");
  CachedRepo found;
  found.id = repo.id();
  found.folder = repo.folder();
  RETURN_IF_ERROR(for_each_below(repo.blobs_folder(), [&](const fs::directory_entry& entry) {
    const bool is_partial = entry.path().string().ends_with(kPartialSuffix);
    (is_partial ? found.num_partial_bytes : found.num_bytes) += size_of(entry.path());
  }));
  ASSIGN_OR_RETURN(auto refs, refs_by_commit(repo));
  ASSIGN_OR_RETURN(const std::set<std::string> commits, commits_of(repo));
  for (const std::string& commit : commits) {
    ASSIGN_OR_RETURN(CachedRevision revision, read_revision(repo, commit));
    revision.refs = std::move(refs[commit]);
    found.revisions.push_back(std::move(revision));
  }
  return found;
}

StatusOr<std::vector<CachedRepo>> list_cache(const std::string& cache_dir) {
  std::vector<CachedRepo> repos;
  std::error_code error;
  if (!fs::exists(cache_dir, error)) return repos;
  fs::directory_iterator at(cache_dir, error), end;
  for (; !error && at != end; at.increment(error)) {
    const auto id = repo_id_of_folder(at->path().filename().string());
    std::error_code ignored;
    if (!id.has_value() || !at->is_directory(ignored)) continue;
    ASSIGN_OR_RETURN(CachedRepo repo, read_cached_repo(CacheRepo(cache_dir, *id)));
    repos.push_back(std::move(repo));
  }
  if (error) return invalid_argument(cache_dir, ": cannot be listed: ", error.message());
  std::sort(repos.begin(), repos.end(), [](const CachedRepo& a, const CachedRepo& b) { return a.id < b.id; });
  return repos;
}

StatusOr<Removal> plan_removal(const CacheRepo& repo, const std::optional<std::string>& commit) {
  Removal removal;
  ASSIGN_OR_RETURN(const CachedRepo found, read_cached_repo(repo));
  ASSIGN_OR_RETURN(std::set<std::string> commits, commits_of(repo));
  if (commit.has_value() && commits.erase(*commit) == 0) {
    return not_found(repo.snapshot(*commit), ": no such folder");
  }
  if (!commit.has_value() || commits.empty()) {
    removal.paths = {repo.folder(), repo.locks_folder()};
    removal.num_bytes = found.num_bytes + found.num_partial_bytes;
    removal.is_whole_repo = true;
    return removal;
  }
  ASSIGN_OR_RETURN(std::set<std::string> blobs, blobs_of(repo, *commit));
  for (const std::string& other : commits) {
    ASSIGN_OR_RETURN(const std::set<std::string> kept, blobs_of(repo, other));
    for (const std::string& blob : kept) blobs.erase(blob);
  }
  // The names first: what is left of a removal that was cut is no snapshot that looks whole.
  for (const CachedRevision& revision : found.revisions) {
    if (revision.commit != *commit) continue;
    for (const std::string& ref : revision.refs) removal.paths.push_back(repo.ref(ref));
  }
  removal.paths.push_back(repo.snapshot(*commit));
  removal.paths.push_back(repo.folder() + "/.no_exist/" + *commit);
  removal.paths.push_back(repo.tree(*commit));
  for (const std::string& blob : blobs) {
    removal.num_bytes += size_of(repo.blob(blob));
    removal.paths.push_back(repo.blob(blob));
    removal.paths.push_back(repo.lock(blob));
  }
  return removal;
}

Status remove(const Removal& removal) {
  for (const std::string& path : removal.paths) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return invalid_argument(path, ": cannot be removed: ", error.message());
  }
  return ok_status();
}

}  // namespace transept

#include "hub/fetch_model.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/input_file.h"
#include "base/mutex.h"
#include "hub/cache_layout.h"
#include "hub/fetch_blob.h"
#include "hub/hub_client.h"
#include "hub/whole_file.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAdapterConfig = "adapter_config.json";
constexpr size_t kMaxAdapterBytes = size_t{1} << 20;
constexpr int64_t kSpareBytes = int64_t{64} << 20;  // of the disk, for everything else

// "model-00001-of-00002.safetensors" of "model.safetensors.index.json".
bool may_be_shard(std::string_view path, std::string_view index) {
  constexpr std::string_view kEnd = ".index.json";
  if (!index.ends_with(kEnd)) return false;
  const std::string_view whole = index.substr(0, index.size() - kEnd.size());
  const size_t dot = whole.rfind('.');
  if (dot == std::string_view::npos) return false;
  return path.starts_with(str_cat(whole.substr(0, dot), "-")) && path.ends_with(whole.substr(dot));
}

// The folder itself, or the one above that is there: it is on the disk that a download would fill.
fs::path nearest_folder(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

// Clients, each with a connection that is kept, and the threads that use them.
class Workers final {
 public:
  static StatusOr<Workers> create(const HubSettings& settings, const FetchOptions& options, FetchControl& control) {
    Workers workers(control);
    for (int i = 0; i < options.num_workers; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<HubClient> client, HubClient::create(settings, control, options.max_tries));
      workers.clients_.push_back(std::move(client));
    }
    return workers;
  }

  HubClient& first() { return *clients_.front(); }

  // Calls `run` for every index below `count`, several at once, until one fails. Returns the first error.
  Status for_each(size_t count, const std::function<Status(HubClient&, size_t)>& run) {
    std::atomic<size_t> next = 0;
    Mutex mutex;  // guards first_error: annotations are for members
    Status first_error;
    const auto work = [&](HubClient& client) {
      for (size_t i = next++; i < count && !control_.is_stopped(); i = next++) {
        Status status = run(client, i);
        if (status.ok()) continue;
        const MutexLock lock(mutex);
        if (first_error.ok()) first_error = std::move(status);
        control_.stop();
      }
    };
    std::vector<std::thread> threads;
    const size_t num_threads = std::min(clients_.size(), count);
    for (size_t i = 1; i < num_threads; ++i) threads.emplace_back([&, i] { work(*clients_[i]); });
    work(first());
    for (std::thread& thread : threads) thread.join();
    return first_error;
  }

 private:
  explicit Workers(FetchControl& control) : control_(control) {}

  FetchControl& control_;
  std::vector<std::unique_ptr<HubClient>> clients_;
};

class ModelFetch final {
 public:
  ModelFetch(const RepoName& repo, const HubSettings& settings, const FetchOptions& options, Workers& workers,
             FetchControl& control)
      : repo_(repo), cache_(settings.cache_dir, repo.id), options_(options), workers_(workers), control_(control) {}

  StatusOr<FetchedModel> run() {
    ASSIGN_OR_RETURN(const RepoInfo info, workers_.first().info(repo_));
    commit_ = info.commit;
    ASSIGN_OR_RETURN(const std::vector<std::string> paths, list(info));
    const StatusOr<SelectedFiles> selected = select_files(paths, options_.parts);
    if (!selected.ok()) return refuse(selected.status(), paths);
    RETURN_IF_ERROR(plan(*selected));
    // Not before: the cache holds nothing of what is no model, or has no room.
    if (new_tree_.has_value()) RETURN_IF_ERROR(cache_.write_tree(commit_, *new_tree_));
    RETURN_IF_ERROR(cache_.make_folders(commit_));
    RETURN_IF_ERROR(fetch(selected->small));
    const std::string folder = cache_.snapshot(commit_);
    if (options_.accept) {
      // Whatever is wrong with the files, it is the repository's.
      const Status accepted = options_.accept(folder);
      if (!accepted.ok()) return unimplemented(error_message(accepted));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> weights, weights_of(*selected, paths));
    RETURN_IF_ERROR(fetch(weights));
    RETURN_IF_ERROR(cache_.write_ref(repo_.revision, commit_));
    return FetchedModel{.commit = commit_, .snapshot = folder, .num_bytes = control_.received()};
  }

 private:
  // The cache keeps a commit's listing: it never changes.
  StatusOr<std::vector<std::string>> list(const RepoInfo& info) {
    std::optional<std::vector<ListedFile>> files = cache_.read_tree(commit_);
    if (!files.has_value()) {
      ASSIGN_OR_RETURN(files, workers_.first().tree(repo_, commit_));
      if (!files.has_value()) return info.paths;
      new_tree_ = files;
    }
    std::vector<std::string> paths;
    for (const ListedFile& file : *files) {
      paths.push_back(file.path);
      listed_[file.path] = file;
    }
    return paths;
  }

  StatusOr<std::vector<std::string>> weights_of(const SelectedFiles& selected, const std::vector<std::string>& paths) {
    if (selected.index.empty()) return selected.weights;
    ASSIGN_OR_RETURN(const std::string text, read_file(cache_.pointer(commit_, selected.index), kMaxAnswerBytes));
    StatusOr<std::vector<std::string>> shards = parse_shards(text);
    if (!shards.ok()) return with_prefix(shards.status(), str_cat(repo_.text(), ": ", selected.index));
    const std::set<std::string, std::less<>> listed(paths.begin(), paths.end());
    for (const std::string& shard : *shards) {
      if (!listed.contains(shard)) {
        return invalid_argument(repo_.text(), ": ", selected.index, " names the shard ", shard,
                                ", which the repository has not");
      }
    }
    return shards;
  }

  // Why it is no model. An adapter says itself which model it was made for.
  Status refuse(const Status& why, const std::vector<std::string>& paths) {
    std::string text;
    if (std::ranges::find(paths, kAdapterConfig) != paths.end()) {
      const auto on_restart = [] { return ok_status(); };
      const auto on_bytes = [&](std::span<const std::byte> bytes) -> Status {
        if (bytes.size() > kMaxAdapterBytes - text.size()) return invalid_argument("longer than an adapter's settings");
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return ok_status();
      };
      const Status read = workers_.first().read(repo_, commit_, std::string(kAdapterConfig), 0, {on_restart, on_bytes});
      if (!read.ok()) text.clear();
    }
    const std::string base = base_of_adapter(text);
    return unimplemented(repo_.text(), ": ", error_message(why),
                         base.empty() ? "" : str_cat("; its base model is ", base));
  }

  bool is_there(const std::string& file) const {
    const auto listed = listed_.find(file);
    return is_whole_file(cache_.pointer(commit_, file),
                         listed == listed_.end() ? HubSize{} : listed->second.hub_size());
  }

  // Whether all has room, before anything comes, as far as the listing tells: an index, which comes first, names the
  // shards for certain.
  Status plan(const SelectedFiles& selected) {
    std::vector<FetchTask> tasks;
    for (const auto& [path, file] : listed_) {
      const bool is_wanted = std::ranges::find(selected.small, path) != selected.small.end() ||
                             std::ranges::find(selected.weights, path) != selected.weights.end() ||
                             may_be_shard(path, selected.index);
      if (!is_wanted) continue;
      if (is_there(path)) continue;
      tasks.push_back({.file = path, .remote = {}});
      tasks.back().remote.etag = file.lfs_sha256.value_or(file.blob_id);
      tasks.back().remote.size = planned_[path] = file.content_size();
    }
    return check_space(tasks);
  }

  Status fetch(const std::vector<std::string>& files) {
    std::vector<FetchTask> tasks;
    for (const std::string& file : files) {
      if (!is_there(file)) tasks.push_back({.file = file, .remote = {}});
    }
    RETURN_IF_ERROR(
        workers_.for_each(tasks.size(), [&](HubClient& client, size_t i) { return ask(client, tasks[i]); }));
    std::vector<FetchTask> unplanned;  // and what is of another size than the listing says
    for (const FetchTask& task : tasks) {
      const auto planned = planned_.find(task.file);
      const int64_t listed = planned == planned_.end() ? 0 : planned->second;
      if (planned != planned_.end() && listed == task.remote.size) continue;
      control_.add_total(-listed);
      unplanned.push_back(task);
    }
    RETURN_IF_ERROR(check_space(unplanned));
    // The largest first, so that none begins when the others have ended.
    std::sort(tasks.begin(), tasks.end(), [](const FetchTask& a, const FetchTask& b) {
      return a.remote.size.value_or(0) > b.remote.size.value_or(0);
    });
    return workers_.for_each(tasks.size(), [&](HubClient& client, size_t i) {
      return fetch_blob(client, repo_, cache_, commit_, tasks[i]);
    });
  }

  Status ask(HubClient& client, FetchTask& task) {
    ASSIGN_OR_RETURN(std::optional<RemoteFile> remote, client.head(repo_, commit_, task.file));
    if (!remote.has_value()) {
      RETURN_IF_ERROR(cache_.mark_missing(commit_, task.file));
      return not_found(repo_.text(), ": ", task.file, " is listed, and the hub has it not (404)");
    }
    task.remote = std::move(*remote);
    return ok_status();
  }

  Status check_space(const std::vector<FetchTask>& tasks) {
    int64_t total = 0, missing = 0;
    for (const FetchTask& task : tasks) {
      const int64_t size = std::min(task.remote.size.value_or(0), INT64_MAX / 2 - total);
      total += size;
      missing += std::min(missing_bytes(cache_, task), size);
    }
    control_.add_total(total);
    std::error_code error;
    const fs::space_info space = fs::space(nearest_folder(cache_.folder()), error);
    const bool is_disk = !error && space.capacity > 0;  // /proc is none
    const bool has_room = space.available >= static_cast<uintmax_t>(missing + kSpareBytes);
    if (!is_disk || missing == 0 || has_room) return ok_status();
    return resource_exhausted(repo_.text(), ": ", format_bytes(static_cast<uint64_t>(missing)), " are to come, and ",
                              format_bytes(kSpareBytes), " stay free beside them, but ", cache_.folder(),
                              " has room for ", format_bytes(space.available),
                              ": free some (transept rm MODEL), or name another disk with --download-dir");
  }

  const RepoName& repo_;
  const CacheRepo cache_;
  const FetchOptions& options_;
  Workers& workers_;
  FetchControl& control_;
  std::string commit_;
  std::optional<std::vector<ListedFile>> new_tree_;  // a listing that the cache has not
  std::map<std::string, ListedFile> listed_;         // empty: the hub lists names alone
  std::map<std::string, int64_t> planned_;           // whose bytes plan() has counted
};

}  // namespace

StatusOr<FetchedModel> fetch_model(const HubSettings& settings, const RepoName& repo, const FetchOptions& options) {
  RETURN_IF_ERROR(settings.endpoint_error);
  FetchControl control(options.on_progress);
  ASSIGN_OR_RETURN(Workers workers, Workers::create(settings, options, control));
  return ModelFetch(repo, settings, options, workers, control).run();
}

}  // namespace transept

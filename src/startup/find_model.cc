#include "startup/find_model.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "hub/fetch_model.h"
#include "hub/find_cached.h"
#include "startup/check_folder.h"
#include "startup/model_files.h"
#include "startup/recognise_model.h"
#include "startup/whisper_alias.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// The folder of the file that this code was loaded from: the binary, or libtransept.so in any program. "": unknown.
fs::path code_folder() {
  std::error_code error;
  static const char mark = 0;
  Dl_info info = {};
  // Of the program itself the name is argv[0], which says nothing sure.
  if (dladdr(&mark, &info) != 0 && info.dli_fname != nullptr &&
      fs::path(info.dli_fname).filename().string().find(".so") != std::string::npos) {
    return fs::weakly_canonical(info.dli_fname, error).parent_path();
  }
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// Where bundled models may lie, nearest first.
std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("TRANSEPT_MODELS"); given != nullptr) folders.emplace_back(given);
  const fs::path folder = code_folder();
  if (folder.empty()) return folders;
  folders.push_back(folder / "../share/transept/models");
  folders.push_back(folder / "../../models");  // build/PRESET/transept in a source tree
  return folders;
}

std::vector<std::string> bundled_names() {
  std::vector<std::string> names;
  for (const fs::path& folder : model_folders()) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (fs::exists(at->path() / "config.json", ignored)) names.push_back(at->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string suggestion(const std::string& name) {
  const std::string meant = meant_name(name);
  return meant.empty() ? "" : str_cat("; did you mean ", meant, ", of the hub?");
}

// Of a Python wheel, and of a library that was copied alone.
constexpr std::string_view kNoneBundled =
    "; none is bundled here: a clone, the tarball and the .deb have models, and TRANSEPT_MODELS names their folder";

Status nowhere(const std::string& name) {
  if (is_model_file_name(name)) return not_found("model ", name, ": no such file", suggestion(name));
  const std::vector<std::string> bundled = bundled_names();
  return not_found("model ", name, ": no such folder, and no bundled model of that name",
                   bundled.empty() ? std::string(kNoneBundled) : str_cat("; bundled: ", join(bundled, ", ")),
                   "; a model of the hub is named ORG/NAME", suggestion(name));
}

StatusOr<std::string> fetch(const HubSettings& settings, const RepoName& repo, const FindModelOptions& find,
                            bool is_urgent) {
  RETURN_IF_ERROR(settings.endpoint_error);
  log_info(repo.text(), ": fetching from ", settings.endpoint, " into ", settings.cache_dir);
  FetchOptions options;
  options.parts = find.parts;
  options.accept = check_model_config;
  if (!is_urgent) options.max_tries = 1;
  if (find.on_progress) {
    options.on_progress = [&](int64_t done, int64_t total) { find.on_progress(repo.text(), done, total); };
  }
  const StatusOr<FetchedModel> fetched = fetch_model(settings, repo, options);
  if (find.on_fetched) find.on_fetched();
  if (!fetched.ok()) return fetched.status();
  return fetched->snapshot;
}

Status offline(const HubSettings& settings, const RepoName& repo, const CachedModel& cached) {
  return not_found("model ", repo.text(), ": no such folder, no bundled model of that name, and the cache ",
                   settings.cache_dir, " ", words_on_lack(cached), "; nothing is fetched, as ", settings.offline_by,
                   " is set: unset it, or run `transept download ", repo.text(), "` where there is a network");
}

StatusOr<std::string> find_repo(const std::string& name, const FindModelOptions& options) {
  ASSIGN_OR_RETURN(const RepoName repo, parse_repo_name(name, options.revision));
  ASSIGN_OR_RETURN(const HubSettings settings, options.hub_settings());
  const CachedModel cached = find_cached(CacheRepo(settings.cache_dir, repo.id), repo.revision, options.parts);
  if (cached.state == CachedModel::State::kComplete) return cached.snapshot;
  if (!settings.offline_by.empty() && !cached.may_run) return offline(settings, repo, cached);
  const auto use_cached = [&](std::string_view why) {
    log_warning(repo.text(), ": ", why, ": what the cache has is used; it may lack ", join(cached.missing, ", "));
    return cached.snapshot;
  };
  if (!settings.offline_by.empty()) return use_cached(settings.offline_by + " is set");
  StatusOr<std::string> folder = fetch(settings, repo, options, /*is_urgent=*/!cached.may_run);
  if (folder.ok()) return folder;
  if (absl::IsUnavailable(folder.status()) && cached.may_run) return use_cached(error_message(folder.status()));
  return with_prefix(folder.status(), str_cat("model ", name, ": no such folder, not whole in the cache ",
                                              settings.cache_dir, ", and not from the hub"));
}

}  // namespace

StatusOr<std::string> find_model(const std::string& name, const FindModelOptions& options) {
  std::error_code error;
  if (name.empty()) return invalid_argument("the model's name is empty");
  if (fs::is_directory(name, error)) return name;
  if (foreign_file(name).has_value()) return name;
  if (fs::exists(name, error)) return model_is_file(name);
  if (name.find('/') == std::string::npos) {
    for (const fs::path& folder : model_folders()) {
      const fs::path candidate = folder / name;
      if (fs::is_directory(candidate, error)) return fs::weakly_canonical(candidate).string();
    }
  }
  const std::string full = full_name(name);
  const bool is_repo = has_repo_form(full) && !is_model_file_name(full);
  return is_repo ? find_repo(full, options) : StatusOr<std::string>(nowhere(name));
}

}  // namespace transept

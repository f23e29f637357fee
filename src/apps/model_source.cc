#include "apps/model_source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "apps/fetch_display.h"
#include "apps/hub_flags.h"
#include "apps/whisper_alias.h"
#include "base/log.h"
#include "hub/fetch_model.h"
#include "hub/find_cached.h"
#include "startup/check_folder.h"
#include "startup/recognise_model.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// Where bundled models may lie, nearest first.
std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("TRANSEPT_MODELS"); given != nullptr) folders.emplace_back(given);
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (error) return folders;
  const fs::path folder = binary.parent_path();
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

Status nowhere(const std::string& name) {
  const std::vector<std::string> bundled = bundled_names();
  return not_found("model ", name, ": no such folder, and no bundled model of that name",
                   bundled.empty() ? "" : str_cat("; bundled: ", join(bundled, ", ")),
                   "; a model of the hub is named ORG/NAME");
}

StatusOr<std::string> fetch(const HubSettings& settings, const RepoName& repo, ModelParts parts, bool is_urgent) {
  log_info(repo.text(), ": fetching from ", settings.endpoint, " into ", settings.cache_dir);
  FetchDisplay display(repo.text(), settings.is_quiet);
  FetchOptions options;
  options.parts = parts;
  options.accept = check_model_config;
  if (!is_urgent) options.max_tries = 1;
  options.on_progress = [&](int64_t done, int64_t total) { display.show(done, total); };
  const StatusOr<FetchedModel> fetched = fetch_model(settings, repo, options);
  display.clear();
  if (!fetched.ok()) return fetched.status();
  return fetched->snapshot;
}

Status offline(const HubSettings& settings, const RepoName& repo, const CachedModel& cached) {
  return not_found(
      "model ", repo.text(), ": no such folder, no bundled model of that name, and the cache ", settings.cache_dir,
      cached.missing.empty() ? " does not have it" : str_cat(" lacks ", join(cached.missing, ", "), " of it"),
      "; nothing is fetched, as HF_HUB_OFFLINE is set: unset it, or run `transept download ", repo.text(),
      "` where there is a network");
}

StatusOr<std::string> resolve_repo(const Flags& flags, const std::string& name, ModelParts parts) {
  ASSIGN_OR_RETURN(const RepoName repo, parse_repo_name(name, flags.text_or("revision", "")));
  ASSIGN_OR_RETURN(const HubSettings settings, hub_settings(flags));
  const CachedModel cached = find_cached(CacheRepo(settings.cache_dir, repo.id), repo.revision, parts);
  if (cached.state == CachedModel::State::kComplete) return cached.snapshot;
  if (settings.is_offline && !cached.may_run) return offline(settings, repo, cached);
  const auto use_cached = [&](std::string_view why) {
    log_warning(repo.text(), ": ", why, ": what the cache has is used; it may lack ", join(cached.missing, ", "));
    return cached.snapshot;
  };
  if (settings.is_offline) return use_cached("HF_HUB_OFFLINE is set");
  StatusOr<std::string> folder = fetch(settings, repo, parts, /*is_urgent=*/!cached.may_run);
  if (folder.ok()) return folder;
  if (absl::IsUnavailable(folder.status()) && cached.may_run) return use_cached(error_message(folder.status()));
  return with_prefix(folder.status(), str_cat("model ", name, ": no such folder, not whole in the cache ",
                                              settings.cache_dir, ", and not from the hub"));
}

}  // namespace

StatusOr<std::string> resolve_model(const Flags& flags, ModelParts parts) {
  const std::string& name = flags.positional().at(0);
  std::error_code error;
  if (name.empty()) return invalid_argument("the model's name is empty");
  if (fs::is_directory(name, error)) return name;
  if (fs::exists(name, error)) return model_is_file(name);
  if (name.find('/') == std::string::npos) {
    for (const fs::path& folder : model_folders()) {
      const fs::path candidate = folder / name;
      if (fs::is_directory(candidate, error)) return fs::weakly_canonical(candidate).string();
    }
  }
  if (const std::string_view full = whisper_alias(name); !full.empty()) {
    return resolve_repo(flags, std::string(full), parts);
  }
  return has_repo_form(name) ? resolve_repo(flags, name, parts) : StatusOr<std::string>(nowhere(name));
}

}  // namespace transept

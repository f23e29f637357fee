// `transept models`: what the cache holds, how large it is, what of it would run, and why not.
#include <algorithm>
#include <cstdio>

#include "apps/hub_flags.h"
#include "apps/verbs.h"
#include "base/json.h"
#include "hub/cache_report.h"
#include "hub/find_cached.h"
#include "startup/check_folder.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "models";
constexpr std::string_view kConfig = "config.json";

// "": it would run.
std::string reason_against(const CacheRepo& repo, const CachedRevision& revision) {
  // Errors name the folder's files by their whole paths.
  const auto own_words = [&](const Status& status) {
    std::string message = error_message(status);
    if (message.starts_with(revision.snapshot + "/")) message.erase(0, revision.snapshot.size() + 1);
    return message;
  };
  const CachedModel found = find_cached(repo, revision.commit, ModelParts::kAll);
  const bool is_whole = found.state == CachedModel::State::kComplete || found.state == CachedModel::State::kUncertain;
  if (!is_whole && !found.may_run && !found.missing.empty()) {
    // What would not run is never fetched whole.
    const Status family = check_model_config(revision.snapshot);
    const bool has_config =
        std::ranges::none_of(found.missing, [](const std::string& name) { return name.starts_with(kConfig); });
    return has_config && !family.ok() ? own_words(family) : str_cat("not whole: the cache ", words_on_lack(found));
  }
  return own_words(check_model_folder(revision.snapshot));
}

Json revision_json(const CacheRepo& repo, const CachedRevision& revision) {
  Json refs = Json::array();
  for (const std::string& ref : revision.refs) refs.push_back(ref);
  const std::string reason = reason_against(repo, revision);
  Json json = Json::object();
  json.set("commit", revision.commit);
  json.set("refs", std::move(refs));
  json.set("folder", revision.snapshot);
  json.set("bytes", revision.num_bytes);
  json.set("files", revision.num_files);
  json.set("runs", reason.empty());
  json.set("reason", reason.empty() ? Json() : Json(reason));
  return json;
}

Json repo_json(const std::string& cache_dir, const CachedRepo& repo) {
  Json revisions = Json::array();
  for (const CachedRevision& revision : repo.revisions) {
    revisions.push_back(revision_json(CacheRepo(cache_dir, repo.id), revision));
  }
  Json json = Json::object();
  json.set("model", repo.id);
  json.set("folder", repo.folder);
  json.set("bytes", repo.num_bytes);
  json.set("incomplete_bytes", repo.num_partial_bytes);
  json.set("revisions", std::move(revisions));
  return json;
}

void print_repo(const std::string& cache_dir, const CachedRepo& repo) {
  std::printf("%s  %s", repo.id.c_str(), format_bytes(static_cast<uint64_t>(repo.num_bytes)).c_str());
  if (repo.num_partial_bytes > 0) {
    std::printf(", and %s that have not come whole",
                format_bytes(static_cast<uint64_t>(repo.num_partial_bytes)).c_str());
  }
  std::printf("\n");
  if (repo.revisions.empty()) std::printf("    no file of it has come\n");
  for (const CachedRevision& revision : repo.revisions) {
    const std::string reason = reason_against(CacheRepo(cache_dir, repo.id), revision);
    const std::string names = revision.refs.empty() ? "" : str_cat("  ", join(revision.refs, ", "));
    std::printf("    %.12s%s  %s  %s%s\n", revision.commit.c_str(), names.c_str(),
                format_bytes(static_cast<uint64_t>(revision.num_bytes)).c_str(),
                reason.empty() ? "runs" : "does not run: ", reason.c_str());
  }
}

Status show(const Flags& flags) {
  if (!flags.positional().empty()) return invalid_argument("takes no argument but flags");
  ASSIGN_OR_RETURN(const HubSettings settings, hub_settings(flags));
  ASSIGN_OR_RETURN(const std::vector<CachedRepo> repos, list_cache(settings.cache_dir));
  if (flags.is_on("json")) {
    Json models = Json::array();
    for (const CachedRepo& repo : repos) models.push_back(repo_json(settings.cache_dir, repo));
    Json json = Json::object();
    json.set("cache", settings.cache_dir);
    json.set("models", std::move(models));
    std::printf("%s\n", json.dump().c_str());
    return ok_status();
  }
  int64_t total = 0;
  for (const CachedRepo& repo : repos) {
    print_repo(settings.cache_dir, repo);
    total += repo.num_bytes + repo.num_partial_bytes;
  }
  std::printf("%zu model%s, %s, in %s\n", repos.size(), repos.size() == 1 ? "" : "s",
              format_bytes(static_cast<uint64_t>(total)).c_str(), settings.cache_dir.c_str());
  return ok_status();
}

}  // namespace

int run_models(const Flags& flags) {
  const Status status = show(flags);
  return status.ok() ? kExitOk : usage_error(kVerb, status);
}

}  // namespace transept

// `transept download ORG/NAME[@REV]`: what the engine reads of a model, into the cache; prints the folder.
#include <algorithm>
#include <cstdio>

#include "apps/fetch_display.h"
#include "apps/hub_flags.h"
#include "apps/verbs.h"
#include "base/log.h"
#include "hub/fetch_model.h"
#include "hub/find_cached.h"
#include "startup/check_folder.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "download";

// As huggingface_hub.snapshot_download without a network.
Status print_cached(const HubSettings& settings, const RepoName& repo) {
  const CachedModel cached = find_cached(CacheRepo(settings.cache_dir, repo.id), repo.revision, ModelParts::kAll);
  if (cached.state != CachedModel::State::kComplete) {
    return absl::FailedPreconditionError(str_cat(repo.text(), ": the cache ", settings.cache_dir, " ",
                                                 words_on_lack(cached), "; nothing is fetched while ",
                                                 settings.offline_by, " is set: unset it"));
  }
  log_info(repo.text(), ": the cache has it; whether the hub has a newer one was not asked, as ", settings.offline_by,
           " is set");
  std::printf("%s\n", cached.snapshot.c_str());
  return ok_status();
}

Status download(const Flags& flags) {
  ASSIGN_OR_RETURN(const RepoName repo, repo_argument(flags));
  ASSIGN_OR_RETURN(const HubSettings settings, hub_settings(flags));
  if (!settings.offline_by.empty()) return print_cached(settings, repo);
  FetchDisplay display(repo.text(), settings.is_quiet);
  FetchOptions options;
  options.accept = check_model_config;
  options.on_progress = [&](int64_t done, int64_t total) { display.show(done, total); };
  const TimePoint begin = std::chrono::steady_clock::now();
  const StatusOr<FetchedModel> fetched = fetch_model(settings, repo, options);
  display.clear();
  RETURN_IF_ERROR(fetched.status());
  const double elapsed = seconds(std::chrono::steady_clock::now() - begin);
  if (fetched->num_bytes == 0) {
    log_info(repo.text(), ": everything was there");
  } else {
    const auto rate = static_cast<uint64_t>(static_cast<double>(fetched->num_bytes) / std::max(elapsed, 1e-3));
    log_info(repo.text(), ": ", format_bytes(static_cast<uint64_t>(fetched->num_bytes)), " came, ", format_bytes(rate),
             "/s");
  }
  std::printf("%s\n", fetched->snapshot.c_str());
  return ok_status();
}

}  // namespace

int run_download(const Flags& flags) {
  const Status status = download(flags);
  return status.ok() ? kExitOk : usage_error(kVerb, status);
}

}  // namespace transept

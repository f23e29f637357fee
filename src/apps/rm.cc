// `transept rm ORG/NAME[@REV]`: a model, or one revision of it, out of the cache.
#include <unistd.h>

#include <cstdio>

#include "apps/hub_flags.h"
#include "apps/verbs.h"
#include "hub/cache_report.h"

namespace transept {
namespace {

constexpr std::string_view kVerb = "rm";

StatusOr<bool> confirmed(const std::string& question) {
  if (isatty(STDIN_FILENO) != 1) return invalid_argument(question, ": give --yes where no terminal can answer");
  std::fprintf(stderr, "%s? [y/N] ", question.c_str());
  char answer[8] = {};
  if (std::fgets(answer, sizeof answer, stdin) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

Status remove_model(const Flags& flags) {
  ASSIGN_OR_RETURN(const RepoName repo, repo_argument(flags));
  ASSIGN_OR_RETURN(const HubSettings settings, hub_settings(flags));
  const CacheRepo cache(settings.cache_dir, repo.id);
  const bool is_one = flags.has("revision") || flags.positional()[0].find('@') != std::string::npos;
  std::optional<std::string> commit;
  if (is_one) {
    commit = cache.commit_of(repo.revision);
    if (!commit.has_value()) return not_found(repo.text(), ": the cache ", settings.cache_dir, " has no such revision");
  }
  const StatusOr<Removal> removal = plan_removal(cache, commit);
  if (absl::IsNotFound(removal.status())) {
    return not_found(repo.text(), ": the cache ", settings.cache_dir,
                     " does not have it; transept models lists what it has");
  }
  RETURN_IF_ERROR(removal.status());
  const std::string what = str_cat(repo.id, is_one ? str_cat(" at ", commit->substr(0, 12)) : "", ", ",
                                   format_bytes(static_cast<uint64_t>(removal->num_bytes)));
  bool goes_on = flags.is_on("yes");
  if (!goes_on) {
    ASSIGN_OR_RETURN(goes_on, confirmed(str_cat("remove ", what)));
  }
  if (!goes_on) {
    std::printf("nothing was removed\n");
    return ok_status();
  }
  RETURN_IF_ERROR(remove(*removal));
  std::printf("removed %s\n", what.c_str());
  return ok_status();
}

}  // namespace

int run_rm(const Flags& flags) {
  const Status status = remove_model(flags);
  return status.ok() ? kExitOk : usage_error(kVerb, status);
}

}  // namespace transept

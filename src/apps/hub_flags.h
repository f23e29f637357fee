// Flags that say which revision of a hub's model is meant, and where its files are; what they and the environment give.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"

namespace transept {

// --revision, --download-dir (vLLM's name) and --cache-dir, the same.
std::vector<FlagSpec> hub_flags();
// The last two: of verbs that are about the cache alone.
std::vector<FlagSpec> cache_flags();

// Errors: HubSettings::from_environment's; two folders that differ.
StatusOr<HubSettings> hub_settings(const Flags& flags);

// A repository's name given to `download` and `rm`, or a short one (whisper_alias.h). Errors: it has not the form of
// one; parse_repo_name's.
StatusOr<RepoName> repo_argument(const Flags& flags);

}  // namespace transept

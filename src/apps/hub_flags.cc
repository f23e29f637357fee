#include "apps/hub_flags.h"

#include "base/environment.h"
#include "base/quoted.h"
#include "startup/whisper_alias.h"

namespace transept {
namespace {

constexpr const char* kHub = "Model files";

}  // namespace

std::vector<FlagSpec> cache_flags() {
  return {
      {"download-dir", "DIR", "huggingface_hub's cache",
       "where models that are named ORG/NAME lie and are fetched to (docs/hub.md)", kHub},
      {"cache-dir", "DIR", "", "the same, by huggingface_hub's name", kHub},
  };
}

std::vector<FlagSpec> hub_flags() {
  std::vector<FlagSpec> table = {
      {"revision", "REV", "main", "branch, tag or commit of a model that is named ORG/NAME; as ORG/NAME@REV", kHub}};
  for (FlagSpec& flag : cache_flags()) table.push_back(std::move(flag));
  return table;
}

StatusOr<HubSettings> hub_settings(const Flags& flags) {
  ASSIGN_OR_RETURN(HubSettings settings, HubSettings::from_environment());
  const auto folder = [&](const std::string& name) -> StatusOr<std::optional<std::string>> {
    auto value = flags.text(name);
    if (!value.has_value() || !value->empty()) return value;
    if (flags.from_environment().contains(name)) return std::nullopt;  // as a variable of nothing counts
    return invalid_argument(flags.name_of(name), ": expected a folder, not nothing");
  };
  ASSIGN_OR_RETURN(const std::optional<std::string> first, folder("download-dir"));
  ASSIGN_OR_RETURN(const std::optional<std::string> second, folder("cache-dir"));
  if (first.has_value() && second.has_value() && *first != *second) {
    return blame_environment(
        invalid_argument("--download-dir ", *first, ": --cache-dir is the same flag, and says ", *second),
        flags.from_environment());
  }
  if (first.has_value() || second.has_value()) settings.cache_dir = first.has_value() ? *first : *second;
  settings.make_cache_dir_absolute();
  return settings;
}

StatusOr<RepoName> repo_argument(const Flags& flags) {
  if (flags.positional().size() != 1) {
    return invalid_argument(flags.positional().empty() ? "which model?" : "one model at a time", ": give ORG/NAME");
  }
  const std::string name = full_name(flags.positional()[0]);
  if (!has_repo_form(name)) {
    const std::string meant = meant_name(name);
    return invalid_argument("model ", in_quotes(name), ": expected ORG/NAME or ORG/NAME@REV",
                            meant.empty() ? "" : str_cat("; did you mean ", meant, "?"));
  }
  return parse_repo_name(name, flags.text_or("revision", ""));
}

}  // namespace transept

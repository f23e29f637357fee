// `transept help`: the help of a verb, or of the binary, for a terminal and for files.
#include <cstdio>
#include <filesystem>

#include "apps/exit_codes.h"
#include "apps/help_pages.h"
#include "apps/help_text.h"
#include "apps/transcript_files.h"
#include "apps/verbs.h"
#include "base/environment.h"

namespace transept {
namespace {

StatusOr<const Verb*> asked_verb(const Flags& flags) {
  const std::vector<std::string>& words = flags.positional();
  if (words.empty()) return nullptr;
  const std::string name = join(words, " ");
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
    names.emplace_back(verb.name);
  }
  const std::string near = nearest(name, names);
  return invalid_argument("unknown verb ", name, near.empty() ? "" : str_cat("; did you mean ", near, "?"));
}

StatusOr<std::string> formatted(const Flags& flags, const Verb* verb) {
  const std::string format = flags.text_or("format", "text");
  const bool all = flags.is_on("all");
  if (format == "text") return verb == nullptr ? overview_text() : verb_help_text(*verb, all);
  if (format == "man") return verb == nullptr ? overview_man() : verb_man(*verb);
  const auto whole = [&](std::string text) -> StatusOr<std::string> {
    if (verb != nullptr) return invalid_argument("--format ", format, " is of all verbs: leave ", verb->name, " out");
    return text;
  };
  if (format == "markdown") return whole(flags_markdown());
  if (format == "bash") return whole(bash_completion());
  if (format == "zsh") return whole(zsh_completion());
  if (format == "fish") return whole(fish_completion());
  return blame_environment(invalid_argument("--format ", format, ": one of text, man, markdown, bash, zsh, fish"),
                           flags.from_environment());
}

Status write_files(const std::string& folder) {
  namespace fs = std::filesystem;
  for (const HelpFile& file : help_files()) {
    const fs::path path = fs::path(folder) / file.path;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) return invalid_argument("--write ", folder, ": ", path.parent_path().string(), ": ", error.message());
    RETURN_IF_ERROR(write_file(path.string(), file.content));
  }
  return ok_status();
}

}  // namespace

int run_help(const Flags& flags) {
  const std::string group = flags.positional().size() == 1 ? group_help_text(flags.positional()[0]) : "";
  if (!group.empty() && flags.text_or("format", "text") == "text" && !flags.has("write")) {
    std::fputs(group.c_str(), stdout);
    return kExitOk;
  }
  const StatusOr<const Verb*> verb = asked_verb(flags);
  if (!verb.ok()) return usage_error("help", verb.status());
  if (const auto folder = flags.text("write"); folder.has_value()) {
    const Status written = write_files(*folder);
    return written.ok() ? kExitOk : usage_error("help", written);
  }
  const StatusOr<std::string> text = formatted(flags, *verb);
  if (!text.ok()) return usage_error("help", text.status());
  std::fputs(text->c_str(), stdout);
  return kExitOk;
}

}  // namespace transept

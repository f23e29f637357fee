// The `transept` binary: picks the verb.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/clear_ends.h"
#include "apps/foreign_flags.h"
#include "apps/help_text.h"
#include "apps/rank_processes.h"
#include "apps/verbs.h"
#include "apps/version.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/quoted.h"

namespace transept {
namespace {

// What the engine tells of itself is for those who ask. A server's log is what its operator reads.
Status apply_log_level(const Verb& verb, const Flags& flags) {
  const std::vector<FlagSpec> table = verb.flags();
  const bool has_engine =
      std::any_of(table.begin(), table.end(), [](const FlagSpec& flag) { return flag.name == "kv-cache-memory"; });
  const bool tells = verb.name == "serve" || !has_engine;
  const std::string fallback = flags.is_on("quiet") ? "error" : tells ? "info" : "warning";
  const std::string level = flags.text_or("log-level", fallback);
  if (level == "error")
    set_log_level(LogLevel::kError);
  else if (level == "warning")
    set_log_level(LogLevel::kWarning);
  else if (level == "info")
    set_log_level(LogLevel::kInfo);
  else
    return blame_environment(invalid_argument("--log-level ", level, ": one of error, warning, info"),
                             flags.from_environment());
  return ok_status();
}

bool wants_all_help(std::string_view argument) { return argument == "--help-all" || argument == "--help_all"; }

int run_verb(const Verb& verb, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const bool wants_all = wants_all_help(argument);
    if (argument == "--help" || argument == "-h" || wants_all) {
      std::fputs(verb_help_text(verb, wants_all).c_str(), stdout);
      return kExitOk;
    }
  }
  const std::vector<FlagSpec> table = verb.flags();
  const std::optional<size_t> place = model_place(verb);
  StatusOr<Flags> flags = Flags::parse(table, arguments, foreign_flags(verb.name, place.has_value(), table));
  if (!flags.ok()) return usage_error(verb.name, flags.status());
  if (place.has_value()) flags->place_model(*place);
  if (const Status status = apply_log_level(verb, *flags); !status.ok()) return usage_error(verb.name, status);
  for (const std::string& note : flags->notes()) log_warning(note);
  if (const std::optional<int> code = run_other_node(verb.name, *flags); code.has_value()) return *code;
  return verb.run(*flags);
}

// Whoever started us with standard descriptors closed would have their numbers go to the files that we open next, and
// what is printed into those. These stand in, opened the wrong way round, so that using them stays an error.
void occupy_standard_descriptors() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(wanted, F_GETFD) >= 0) continue;
    const int fd = ::open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (fd >= 0 && fd != wanted) ::close(fd);  // a lower one was closed in between
  }
}

const Verb* find_verb(std::string_view name) {
  const std::vector<Verb>& all = verbs();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Verb& verb) { return verb.name == name; });
  return at == all.end() ? nullptr : &*at;
}

int main_verb(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "--help-all") {
    std::fputs(overview_text().c_str(), arguments.empty() ? stderr : stdout);
    return arguments.empty() ? kExitUsage : kExitOk;
  }
  if (arguments[0] == "rank") return run_rank_process({arguments.begin() + 1, arguments.end()});
  if (arguments[0] == "--version" || arguments[0] == "version") {
    std::printf("transept %s (%s)\n", kVersion, kCommit);
    return kExitOk;
  }
  if (arguments.size() > 1) {
    if (const Verb* verb = find_verb(arguments[0] + " " + arguments[1]); verb != nullptr) {
      return run_verb(*verb, {arguments.begin() + 2, arguments.end()});
    }
  }
  if (const Verb* verb = find_verb(arguments[0]); verb != nullptr) {
    return run_verb(*verb, {arguments.begin() + 1, arguments.end()});
  }
  if (const std::string group = group_help_text(arguments[0]); !group.empty()) {
    const bool is_asked =
        arguments.size() > 1 && (arguments[1] == "--help" || arguments[1] == "-h" || wants_all_help(arguments[1]));
    if (!is_asked && arguments.size() > 1) {
      std::fprintf(stderr, "transept: unknown verb %s %s\n", arguments[0].c_str(), printable(arguments[1]).c_str());
    }
    std::fputs(group.c_str(), is_asked ? stdout : stderr);
    return is_asked ? kExitOk : kExitUsage;
  }
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::string near = nearest(arguments[0], names);
  std::fprintf(stderr, "transept: unknown verb %s%s\n", arguments[0].c_str(),
               near.empty() ? "; transept --help lists them" : ("; did you mean " + near + "?").c_str());
  return kExitUsage;
}

// What could not be written is no success: a help text that went to a full disk, say.
int with_flushed_output(int code) {
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written || code != kExitOk) return code;
  std::fputs("transept: standard output: not everything could be written\n", stderr);
  return kExitUsage;
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) {
  transept::occupy_standard_descriptors();
  transept::prepare_clear_ends();
  return transept::with_flushed_output(transept::main_verb({argv + 1, argv + argc}));
}

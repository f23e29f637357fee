// The `transept` binary: picks the verb.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/clear_ends.h"
#include "apps/verbs.h"
#include "apps/version.h"
#include "base/environment.h"
#include "base/log.h"

namespace transept {
namespace {

constexpr const char* kExitCodes =
    "\nexit codes:\n"
    "    0  ok\n"
    "    1  some inputs failed: each has an error in its result's place\n"
    "    2  usage or start-up; no memory, thread or mapped file to go on with\n"
    "  130  interrupted (SIGINT, SIGTERM): what is finished is written, what is not is named\n"
    "  141  whoever read standard output went away (SIGPIPE), as in: transept generate ... | head -1\n";

void print_overview(std::FILE* to) {
  std::fprintf(to, "transept %s (%s): encoder/decoder transformers\n\nusage: transept VERB ...\n\n", kVersion, kCommit);
  for (const Verb& verb : verbs()) {
    const std::string left = "transept " + std::string(verb.name) + " " + std::string(verb.usage);
    std::fprintf(to, "  %-62s  %s\n", left.c_str(), std::string(verb.summary).c_str());
  }
  std::fprintf(
      to,
      "\nMODEL is a folder in Hugging Face layout, the name of a bundled model (g2p), or ORG/NAME[@REV] on the hub.\n"
      "transept VERB --help lists its flags; each has an environment variable TRANSEPT_<FLAG>.\n"
      "%s",
      kExitCodes);
}

void print_help(const Verb& verb) {
  std::string examples = "\nexample:\n";
  for (const std::string_view command : split(verb.example, '\n')) examples += str_cat("  ", command, "\n");
  std::printf("usage: transept %s %s [FLAGS]\n%s\n%s%s%s", std::string(verb.name).c_str(),
              std::string(verb.usage).c_str(), std::string(verb.summary).c_str(), examples.c_str(),
              format_flags(verb.flags()).c_str(), kExitCodes);
}

Status apply_log_level(const Flags& flags) {
  const std::string level = flags.text_or("log-level", "info");
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

int run_verb(const Verb& verb, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") {
      print_help(verb);
      return kExitOk;
    }
  }
  const StatusOr<Flags> flags = Flags::parse(verb.flags(), arguments);
  if (!flags.ok()) return usage_error(verb.name, flags.status());
  if (const Status status = apply_log_level(*flags); !status.ok()) return usage_error(verb.name, status);
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
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_overview(arguments.empty() ? stderr : stdout);
    return arguments.empty() ? kExitUsage : kExitOk;
  }
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

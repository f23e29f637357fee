// The help as files: manual pages, docs/flags.md, and completions of shells, all from the tables of verbs and flags.
// Pure: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/verbs.h"

namespace transept {

// transept-VERB(1), and transept(1), in the man macros.
std::string verb_man(const Verb& verb);
std::string overview_man();

// docs/flags.md: verbs, flags by group, flags of other tools.
std::string flags_markdown();

// Completion scripts: verbs, flags, words of flags that have choices, files elsewhere (completions.cc).
std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

// A file of the help below a share/ folder.
struct HelpFile {
  std::string path;  // "man/man1/transept-generate.1"
  std::string content;
};
std::vector<HelpFile> help_files();

// "transept-bench-serve".
std::string page_name(const Verb& verb);

}  // namespace transept

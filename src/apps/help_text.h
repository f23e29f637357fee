// The help of the binary for a terminal, from the tables of verbs and flags. Pure: thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/flags.h"
#include "apps/verbs.h"

namespace transept {

struct ExitCode {
  int code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

// What is said of flags in general: their environment variables, "--", values of switches.
extern const std::string_view kFlagRules;

// Returns the flags that every verb has besides its table: --help and --help-all.
std::span<const FlagSpec> help_flags();

// Returns the words of a verb's synopsis before which MODEL stands; unset: the verb takes no MODEL.
std::optional<size_t> model_place(const Verb& verb);

// Returns the examples of a verb, one command each.
std::vector<std::string_view> examples(const Verb& verb);

// Returns the titles of the groups of `table`, in order.
std::vector<std::string> groups(const std::vector<FlagSpec>& table);

// Formats the flags of `table` under their groups, wrapped at 110 columns. Refused flags are left out; advanced ones,
// too, unless `all`.
std::string format_flags(const std::vector<FlagSpec>& table, bool all);

// Returns "HELP (default: X)".
std::string help_with_default(const FlagSpec& flag);

std::string overview_text();
std::string verb_help_text(const Verb& verb, bool all);

// Returns the verbs that begin with a word that is no verb alone ("epd"), and their examples; "": there are none.
std::string group_help_text(std::string_view first);

}  // namespace transept

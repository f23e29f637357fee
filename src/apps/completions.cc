// Completion scripts of bash, zsh and fish (help_pages.h).
#include <algorithm>

#include "apps/help_pages.h"
#include "apps/help_text.h"
#include "base/strings.h"

namespace transept {
namespace {

enum class ValueKind : uint8_t { kNone, kWords, kFiles, kOther };

std::string words_of(const FlagSpec& flag) {
  if (flag.value_name == "BOOL" || flag.value_name == "[BOOL]") return "true false";
  std::string words;
  for (const std::string_view word : choices(flag)) words += str_cat(words.empty() ? "" : " ", word);
  return words;
}

ValueKind value_kind(const FlagSpec& flag) {
  if (flag.value_name.empty()) return ValueKind::kNone;
  if (!words_of(flag).empty()) return ValueKind::kWords;
  const bool is_path = flag.value_name.starts_with("FILE") || flag.value_name.starts_with("DIR");
  return is_path ? ValueKind::kFiles : ValueKind::kOther;
}

// What is completed: no refused flags.
std::vector<FlagSpec> flags_of(const Verb& verb) {
  std::vector<FlagSpec> table = verb.flags();
  table.insert(table.end(), help_flags().begin(), help_flags().end());
  std::erase_if(table, [](const FlagSpec& flag) { return !flag.refusal.empty(); });
  return table;
}

// A verb of two words has its own flags, and its first word may be a verb, too.
struct TwoWords {
  std::string_view first, second;
  const Verb* verb = nullptr;
  bool first_is_verb = false;
};
std::vector<TwoWords> verbs_of_two_words() {
  std::vector<TwoWords> found;
  for (const Verb& verb : verbs()) {
    const size_t space = verb.name.find(' ');
    if (space == std::string_view::npos) continue;
    TwoWords words{verb.name.substr(0, space), verb.name.substr(space + 1), &verb};
    words.first_is_verb = std::ranges::any_of(verbs(), [&](const Verb& one) { return one.name == words.first; });
    found.push_back(words);
  }
  return found;
}

// What may stand behind a first word, besides flags: second words of verbs, and words to choose from that a verb's
// synopsis begins with ("latency|throughput MODEL").
std::string second_words(std::string_view first) {
  std::string words;
  for (const Verb& verb : verbs()) {
    if (verb.name != first) continue;
    const FlagSpec argument{.value_name = std::string(verb.usage.substr(0, verb.usage.find(' ')))};
    words = words_of(argument);
  }
  for (const TwoWords& two : verbs_of_two_words()) {
    if (two.first == first) words += str_cat(words.empty() ? "" : " ", two.second);
  }
  return words;
}

// First words, each once.
std::vector<std::string_view> first_words() {
  std::vector<std::string_view> found;
  for (const Verb& verb : verbs()) {
    const std::string_view first = verb.name.substr(0, verb.name.find(' '));
    if (std::ranges::find(found, first) == found.end()) found.push_back(first);
  }
  return found;
}

std::string verb_words() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (verb.name.find(' ') == std::string_view::npos) names.emplace_back(verb.name);
  }
  for (const TwoWords& words : verbs_of_two_words()) {
    if (!words.first_is_verb) names.emplace_back(words.first);
  }
  return join(names, " ");
}

// In single quotes, which a quote of the text ends for a moment.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// fish has escapes within single quotes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// A description between the brackets of _arguments, where brackets and colons end it.
std::string zsh_description(const FlagSpec& flag) {
  std::string out;
  for (const char c : flag.help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// "--dtype|-x" of the flags that `kind` is the kind of, as a pattern of case; "": there are none.
std::string bash_pattern(const std::vector<FlagSpec>& table, ValueKind kind) {
  std::vector<std::string> names;
  for (const FlagSpec& flag : table) {
    if (value_kind(flag) != kind || flag.value_name.starts_with('[')) continue;
    names.push_back("--" + flag.name);
    if (flag.letter != 0) names.push_back(str_cat("-", flag.letter));
  }
  return join(names, "|");
}

std::string bash_verb(const Verb& verb) {
  const std::vector<FlagSpec> table = flags_of(verb);
  std::vector<std::string> names;
  std::string out = str_cat("    ", shell_quoted(verb.name), ")\n      case $prev in\n");
  for (const FlagSpec& flag : table) {
    names.push_back("--" + flag.name);
    if (value_kind(flag) != ValueKind::kWords || flag.value_name.starts_with('[')) continue;
    const std::string letter = flag.letter == 0 ? "" : str_cat("|-", flag.letter);
    out += str_cat("        --", flag.name, letter, ") COMPREPLY=($(compgen -W '", words_of(flag),
                   "' -- \"$cur\")); return ;;\n");
  }
  if (const std::string files = bash_pattern(table, ValueKind::kFiles); !files.empty()) {
    out += str_cat("        ", files, ") return ;;\n");
  }
  if (const std::string others = bash_pattern(table, ValueKind::kOther); !others.empty()) {
    out += str_cat("        ", others, ") compopt +o default 2>/dev/null; return ;;\n");
  }
  const std::string arguments =
      verb.name == "help" ? str_cat("      COMPREPLY=($(compgen -W '", verb_words(), "' -- \"$cur\"))\n") : "";
  return str_cat(out, "      esac\n", arguments, "      flags='", join(names, " "), "' ;;\n");
}

}  // namespace

// Files are completed by `complete -o default`, wherever COMPREPLY stays empty.
std::string bash_completion() {
  std::string out = str_cat(R"(# bash completion of transept. Printed by transept help --format bash.
_transept() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]:-} flags=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ')",
                            verb_words(), R"(' -- "$cur"))
    return
  fi
)");
  for (const TwoWords& words : verbs_of_two_words()) {
    out += str_cat("  if [[ $verb == ", words.first, " && ${COMP_WORDS[2]:-} == ", words.second,
                   " && $COMP_CWORD -gt 2 ]]; then verb='", words.verb->name, "'; fi\n");
  }
  for (const std::string_view first : first_words()) {
    const std::string words = second_words(first);
    if (words.empty()) continue;
    out += str_cat("  if [[ $verb == ", first, " && $COMP_CWORD == 2 && $cur != -* ]]; then COMPREPLY=($(compgen -W '",
                   words, "' -- \"$cur\")); return; fi\n");
  }
  out += "  case $verb in\n";
  for (const Verb& verb : verbs()) out += bash_verb(verb);
  return out + R"(  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur")); fi
}
complete -o default -F _transept transept
)";
}

std::string zsh_completion() {
  std::string out =
      "#compdef transept\n# Printed by transept help --format zsh.\n_transept() {\n  local -a verbs\n  verbs=(\n";
  for (const Verb& verb : verbs()) {
    if (verb.name.find(' ') != std::string_view::npos) continue;
    out += str_cat("    ", shell_quoted(str_cat(verb.name, ":", verb.summary)), "\n");
  }
  for (const TwoWords& words : verbs_of_two_words()) {
    if (!words.first_is_verb) out += str_cat("    ", words.first, "\n");
  }
  out += R"(  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
)";
  for (const TwoWords& words : verbs_of_two_words()) {
    out += str_cat("  if [[ $verb == ", words.first, " && $words[3] == ", words.second,
                   " ]] && (( CURRENT > 3 )); then\n    verb='", words.verb->name,
                   "'\n    shift words\n    (( CURRENT-- ))\n  fi\n");
  }
  for (const std::string_view first : first_words()) {
    const std::string words = second_words(first);
    if (words.empty()) continue;
    out += str_cat("  if [[ $verb == ", first, " && $words[3] != -* ]] && (( CURRENT == 3 )); then\n    compadd ",
                   words, "\n    return\n  fi\n");
  }
  out += R"(  shift words
  (( CURRENT-- ))
  case $verb in
)";
  for (const Verb& verb : verbs()) {
    out += str_cat("    ", shell_quoted(verb.name), ")\n      _arguments");
    for (const FlagSpec& flag : flags_of(verb)) {
      std::string action;
      switch (value_kind(flag)) {
        case ValueKind::kNone: break;
        case ValueKind::kWords: action = str_cat(":value:(", words_of(flag), ")"); break;
        case ValueKind::kFiles: action = ":file:_files"; break;
        case ValueKind::kOther: action = ":value:"; break;
      }
      if (flag.value_name.starts_with('[')) action.insert(0, ":");
      const std::string text = str_cat("[", zsh_description(flag), "]", action),
                        repeats = flag.is_repeatable ? "*" : "";
      out += str_cat(" \\\n        ", shell_quoted(str_cat(repeats, "--", flag.name, text)));
      if (flag.letter != 0) out += str_cat(" ", shell_quoted(str_cat(repeats, "-", flag.letter, text)));
    }
    out += verb.name == "help" ? str_cat(" \\\n        '*:verb:(", verb_words(), ")' ;;\n")
                               : std::string(" \\\n        '*:argument:_files' ;;\n");
  }
  return out +
         "  esac\n}\nif [ \"$funcstack[1]\" = _transept ]; then\n  _transept \"$@\"\nelse\n  compdef _transept "
         "transept\nfi\n";
}

std::string fish_completion() {
  std::string out = R"(# fish completion of transept. Printed by transept help --format fish.
function __transept_verb
    set -l words (commandline -opc)
    set -e words[1]
    set -l verb $words[1]
)";
  for (const TwoWords& words : verbs_of_two_words()) {
    out += str_cat("    if test \"$words[1] $words[2]\" = \"", words.verb->name, "\"\n        set verb \"",
                   words.verb->name, "\"\n    end\n");
  }
  out += "    test \"$verb\" = \"$argv[1]\"\nend\n";
  for (const std::string_view first : first_words()) {
    if (std::ranges::none_of(verbs(), [&](const Verb& verb) { return verb.name == first; })) {
      out += str_cat("complete -c transept -f -n \"__transept_verb ''\" -a ", first, "\n");
    }
    if (const std::string words = second_words(first); !words.empty()) {
      out += str_cat("complete -c transept -f -n \"__transept_verb '", first,
                     "'; and test (count (commandline -opc)) -eq 2\" -a ", fish_quoted(words), "\n");
    }
  }
  for (const Verb& verb : verbs()) {
    if (verb.name.find(' ') == std::string_view::npos) {
      out += str_cat("complete -c transept -f -n \"__transept_verb ''\" -a ", verb.name, " -d ",
                     fish_quoted(verb.summary), "\n");
    }
    const std::string begin =
        str_cat("complete -c transept -n ", fish_quoted(str_cat("__transept_verb '", verb.name, "'")));
    if (verb.name == "help") out += str_cat(begin, " -f -a '", verb_words(), "'\n");
    for (const FlagSpec& flag : flags_of(verb)) {
      out += str_cat(begin, " -l ", flag.name, flag.letter == 0 ? "" : str_cat(" -s ", flag.letter));
      const bool is_switch = flag.value_name.starts_with('[');
      switch (is_switch ? ValueKind::kNone : value_kind(flag)) {
        case ValueKind::kNone: break;
        case ValueKind::kWords: out += str_cat(" -x -a ", fish_quoted(words_of(flag))); break;
        case ValueKind::kFiles: out += " -r -F"; break;
        case ValueKind::kOther: out += " -x"; break;
      }
      out += str_cat(" -d ", fish_quoted(flag.help), "\n");
    }
  }
  return out;
}

}  // namespace transept

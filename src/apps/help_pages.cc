#include "apps/help_pages.h"

#include <algorithm>
#include <cstdio>

#include "apps/foreign_flags.h"
#include "apps/help_text.h"
#include "apps/version.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace transept {
namespace {

// Text for troff: no character of it is a command.
std::string troff(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    const char c = text.front();
    if (step.num_bytes > 1) {
      char code[16];
      std::snprintf(code, sizeof code, "\\[u%04X]", static_cast<unsigned>(step.code_point));
      out += code;
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '"') {
      out += "\\(dq";
    } else {
      out += c;
    }
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return str_cat("\\fB", troff(text), "\\fR"); }
std::string italic(std::string_view text) { return str_cat("\\fI", troff(text), "\\fR"); }

std::string man_title(std::string_view name, std::string_view summary) {
  std::string title(name);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return str_cat(".\\\" Printed by transept help --format man.\n.TH ", troff(title), " 1 \"", kCommitDate,
                 "\" \"transept ", kVersion, "\" \"Transept\"\n.SH NAME\n", troff(name), " \\- ", troff(summary), "\n");
}

std::string man_flag(const FlagSpec& flag) {
  const std::string letter = flag.letter == 0 ? "" : bold(str_cat("-", flag.letter)) + ", ";
  const std::string value = flag.value_name.empty() ? "" : " " + italic(flag.value_name);
  const std::string text = troff(help_with_default(flag));
  return str_cat(".TP\n", letter, bold("--" + flag.name), value, "\n", text, "\n");
}

std::string man_exit_codes() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitCode& row : exit_codes())
    out += str_cat(".TP\n", bold(str_cat(row.code)), "\n", troff(row.meaning), "\n");
  return out;
}

std::string man_commands(std::span<const std::string_view> commands) {
  std::string out = ".SH EXAMPLES\n.nf\n";
  for (const std::string_view command : commands) out += str_cat(troff(command), "\n");
  return out + ".fi\n";
}

// Text whose signs mean nothing to Markdown.
std::string prose(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '<' || c == '_') out += '\\';
    out += c;
  }
  return out;
}

// Lists and no tables: what a flag means is a paragraph at times.
constexpr size_t kPageWidth = 150;

std::string list_item(std::string_view text) { return str_cat("* ", wrapped(text, 2, kPageWidth), "\n"); }

std::string markdown_items(const std::vector<FlagSpec>& table, std::string_view group) {
  std::string out;
  for (const FlagSpec& flag : table) {
    if (flag.group != group || !flag.refusal.empty()) continue;
    const std::string letter = flag.letter == 0 ? "" : str_cat("`-", flag.letter, "`, ");
    const std::string name = str_cat("--", flag.name, flag.value_name.empty() ? "" : " ", flag.value_name);
    const std::string default_text =
        flag.default_text.empty() ? "" : str_cat(" (default: ", prose(flag.default_text), ")");
    const std::string listed = flag.is_advanced ? " *Listed by `--help-all`.*" : "";
    const std::string end = flag.help.ends_with('.') ? "" : ".";
    out += list_item(str_cat(letter, "`", name, "`", default_text, ": ", prose(flag.help), end, listed));
  }
  return out;
}

// Groups of flags that several verbs have alike are printed once.
std::string markdown_groups() {
  struct Section {
    std::string title, items;
    std::vector<std::string> verbs;
  };
  std::vector<Section> sections;
  for (const Verb& verb : verbs()) {
    const std::vector<FlagSpec> table = verb.flags();
    for (const std::string& group : groups(table)) {
      std::string items = markdown_items(table, group);
      if (items.empty()) continue;
      const auto same = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
        return section.title == group && section.items == items;
      });
      Section& section = same == sections.end() ? sections.emplace_back(Section{group, std::move(items), {}}) : *same;
      section.verbs.push_back(str_cat("`", verb.name, "`"));
    }
  }
  std::string out;
  for (const Section& section : sections) {
    out += str_cat("\n### ", section.title, "\n\n",
                   wrapped(str_cat("Of ", join(section.verbs, ", "), ".\n"), 0, kPageWidth), "\n", section.items);
  }
  return out;
}

std::string foreign_meaning(const ForeignFlag& row) {
  switch (row.kind) {
    case ForeignFlag::Kind::kNothing: return str_cat("accepted, no effect: ", prose(row.why));
    case ForeignFlag::Kind::kRefused: return str_cat("refused: ", prose(row.why));
    default: break;
  }
  if (row.ours.empty()) return "accepted: it is so anyway";
  if (row.ours == "MODEL={}") return "names MODEL";
  if (row.ours == "{}") return "an argument";
  std::string ours(row.ours);
  std::replace(ours.begin(), ours.end(), '=', ' ');
  if (const size_t at = ours.find("{}"); at != std::string::npos) ours.replace(at, 2, row.value_name);
  return str_cat("`", ours, "`");
}

std::string markdown_foreign() {
  std::string out, tool;
  for (const ForeignFlag& row : all_foreign_flags()) {
    if (row.tool != tool) {
      tool = row.tool;
      out += str_cat("\n### ", tool, "\n\n");
    }
    std::vector<std::string> names;
    for (const std::string_view spelling : split(row.spellings, ' ')) {
      const std::string_view value = row.value.empty() || row.value_name.empty() ? row.value_name : row.value;
      names.push_back(str_cat("`", spelling, value.empty() ? "" : " ", value, "`"));
    }
    std::vector<std::string> verbs;
    for (const std::string_view verb : split(row.verbs, ' ')) verbs.emplace_back(verb);
    const std::string of = row.verbs.empty() ? "" : str_cat(" *Of ", join(verbs, ", "), ".*");
    out += list_item(str_cat(join(names, ", "), ": ", foreign_meaning(row), ".", of));
  }
  return out;
}

constexpr std::string_view kIntroduction =
    "# Flags\n\n"
    "`transept help --format markdown` prints this page from the tables that the binary parses by.\n"
    "`transept VERB --help` lists the common flags of a verb, `transept VERB --help-all` all of them.\n\n"
    "* Each flag has an environment variable: `--block-size` is `TRANSEPT_BLOCK_SIZE`. The flag wins.\n"
    "* Underscores may replace dashes. `--flag=VALUE` and `--flag VALUE` are the same.\n"
    "* `--` ends the flags. An argument that begins with a dash and a letter is a flag, unless it is the name of a "
    "file.\n"
    "* Switches may have a value: `true` or `false`.\n";

}  // namespace

std::string page_name(const Verb& verb) {
  std::string name = str_cat("transept-", verb.name);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string verb_man(const Verb& verb) {
  std::string out = man_title(page_name(verb), verb.summary);
  out += str_cat(".SH SYNOPSIS\n", bold(str_cat("transept ", verb.name)), " ",
                 verb.usage.empty() ? "" : italic(verb.usage) + " ", "[", italic("FLAGS"), "]\n");
  out += man_commands(examples(verb));
  out += ".SH OPTIONS\n";
  std::vector<FlagSpec> table = verb.flags();
  table.insert(table.end(), help_flags().begin(), help_flags().end());
  for (const std::string& group : groups(table)) {
    std::string lines;
    for (const FlagSpec& flag : table) {
      if (flag.group == group && flag.refusal.empty()) lines += man_flag(flag);
    }
    if (!lines.empty()) out += str_cat(".SS ", troff(group), "\n", lines);
  }
  out += str_cat(".SH ENVIRONMENT\n", troff(kFlagRules), "\n", man_exit_codes());
  return out + ".SH SEE ALSO\n" + bold("transept") + "(1)\n";
}

std::string overview_man() {
  std::string out = man_title("transept", "inference engine and server for encoder/decoder transformers");
  out += str_cat(".SH SYNOPSIS\n", bold("transept"), " ", italic("VERB"), " [", italic("ARGUMENT..."), "] [",
                 italic("FLAGS"), "]\n.SH VERBS\n");
  for (const Verb& verb : verbs()) {
    out += str_cat(".TP\n", bold(verb.name), verb.usage.empty() ? "" : " " + italic(verb.usage), "\n",
                   troff(verb.summary), "\n");
  }
  std::vector<std::string_view> commands;
  for (const Verb& verb : verbs()) commands.push_back(examples(verb).front());
  out += man_commands(commands);
  out += str_cat(".SH ENVIRONMENT\n", troff(kFlagRules), "\n", man_exit_codes(), ".SH SEE ALSO\n");
  std::vector<std::string> pages;
  for (const Verb& verb : verbs()) pages.push_back(bold(page_name(verb)) + "(1)");
  return out + join(pages, ",\n") + "\n";
}

std::string flags_markdown() {
  std::string out = str_cat(kIntroduction, "\n## Verbs\n\n");
  for (const Verb& verb : verbs()) {
    const std::string name = str_cat("`", verb.name, verb.usage.empty() ? "" : " ", verb.usage, "`");
    out += list_item(str_cat(name, ": ", prose(verb.summary), "."));
  }
  out += "\n## Flags by group\n" + markdown_groups();
  return out +
         "\n## Flags of other tools\n\nThey work, are accepted and said to mean nothing, or are refused with what to "
         "do.\nWithout a verb: of all that have these flags.\n" +
         markdown_foreign();
}

std::vector<HelpFile> help_files() {
  std::vector<HelpFile> files = {{"man/man1/transept.1", overview_man()},
                                 {"bash-completion/completions/transept", bash_completion()},
                                 {"zsh/site-functions/_transept", zsh_completion()},
                                 {"fish/vendor_completions.d/transept.fish", fish_completion()}};
  for (const Verb& verb : verbs()) files.push_back({str_cat("man/man1/", page_name(verb), ".1"), verb_man(verb)});
  return files;
}

}  // namespace transept

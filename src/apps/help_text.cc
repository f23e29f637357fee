#include "apps/help_text.h"

#include <algorithm>

#include "apps/version.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr size_t kHelpColumn = 38, kWidth = 110;

bool is_shown(const FlagSpec& flag, bool all) { return flag.refusal.empty() && (all || !flag.is_advanced); }

std::string format_flag(const FlagSpec& flag) {
  const std::string letter = flag.letter == 0 ? "" : str_cat("-", flag.letter, ", ");
  std::string line = "  " + letter + "--" + flag.name + (flag.value_name.empty() ? "" : " " + flag.value_name);
  if (line.size() + 2 > kHelpColumn)
    line += "\n" + std::string(kHelpColumn, ' ');
  else
    line.resize(kHelpColumn, ' ');
  return line + wrapped(help_with_default(flag), kHelpColumn, kWidth) + "\n";
}

std::string exit_codes_text() {
  std::string out = "\nexit codes:\n";
  for (const ExitCode& row : exit_codes()) {
    std::string code = str_cat(row.code);
    code.insert(0, 5 - code.size(), ' ');
    out += str_cat(code, "  ", row.meaning, "\n");
  }
  return out;
}

}  // namespace

const std::string_view kFlagRules =
    "Each flag has an environment variable TRANSEPT_<FLAG>; the flag wins. -- ends the flags. Underscores may replace "
    "dashes. The flags of the commands of openai-whisper, faster-whisper, whisper.cpp, vLLM (serve) and CTranslate2 "
    "work, are said to mean nothing, or are refused with what to do (docs/flags.md).";

std::span<const ExitCode> exit_codes() {
  static constexpr ExitCode kCodes[] = {
      {0, "ok"},
      {1,
       "some inputs failed: each has an error in its result's place; doctor: something is wrong; inspect: it is "
       "refused"},
      {2, "usage or start-up; no memory, thread or mapped file to go on with"},
      {130, "interrupted (SIGINT, SIGTERM): what is finished is written, what is not is named"},
      {141, "the reader of standard output went away (SIGPIPE), as in: transept generate ... | head -1"},
  };
  return kCodes;
}

std::span<const FlagSpec> help_flags() {
  static const std::vector<FlagSpec> flags = {
      {.name = "help", .help = "print the common flags", .group = "Help", .letter = 'h'},
      {.name = "help-all", .help = "print all flags", .group = "Help"},
  };
  return flags;
}

std::optional<size_t> model_place(const Verb& verb) {
  const std::vector<std::string_view> words = split(verb.usage, ' ');
  const auto at = std::find(words.begin(), words.end(), "MODEL");
  if (at == words.end()) return std::nullopt;
  return static_cast<size_t>(at - words.begin());
}

std::vector<std::string_view> examples(const Verb& verb) { return split(verb.example, '\n'); }

std::vector<std::string> groups(const std::vector<FlagSpec>& table) {
  std::vector<std::string> titles;
  for (const FlagSpec& flag : table) {
    if (std::find(titles.begin(), titles.end(), flag.group) == titles.end()) titles.push_back(flag.group);
  }
  return titles;
}

std::string help_with_default(const FlagSpec& flag) {
  return flag.help + (flag.default_text.empty() ? "" : " (default: " + flag.default_text + ")");
}

std::string format_flags(const std::vector<FlagSpec>& table, bool all) {
  std::string out;
  for (const std::string& group : groups(table)) {
    std::string lines;
    for (const FlagSpec& flag : table) {
      if (flag.group == group && is_shown(flag, all)) lines += format_flag(flag);
    }
    if (!lines.empty()) out += str_cat("\n", group, ":\n", lines);
  }
  return out;
}

std::string overview_text() {
  std::string out = str_cat("transept ", kVersion, " (", kCommit,
                            "): encoder/decoder transformers\n\n"
                            "usage: transept VERB ...\n\n");
  for (const Verb& verb : verbs()) {
    std::string left = str_cat("  transept ", verb.name, " ", verb.usage);
    left.resize(std::max<size_t>(left.size(), 64), ' ');
    out += str_cat(left, "  ", verb.summary, "\n");
  }
  out += str_cat(
      "\nMODEL is a folder in Hugging Face layout (config.json, tokenizer files, model.safetensors or "
      "pytorch_model.bin),\nthe name of a bundled model (g2p), or ORG/NAME[@REV] on the hub.\n",
      "transept VERB --help lists the common flags of a verb, --help-all all of them.\n",
      wrapped(kFlagRules, 0, kWidth), "\n", exit_codes_text());
  return out;
}

std::string group_help_text(std::string_view first) {
  std::string lines, commands;
  for (const Verb& verb : verbs()) {
    if (verb.name == first) return "";
    if (!verb.name.starts_with(str_cat(first, " "))) continue;
    lines += str_cat("  transept ", verb.name, verb.usage.empty() ? "" : " ", verb.usage, "  ", verb.summary, "\n");
    for (const std::string_view command : examples(verb)) commands += str_cat("  ", command, "\n");
  }
  return lines.empty() ? "" : str_cat("usage: transept ", first, " VERB ...\n\n", lines, "\nexample:\n", commands);
}

std::string verb_help_text(const Verb& verb, bool all) {
  std::string out = str_cat("usage: transept ", verb.name, " ", verb.usage, verb.usage.empty() ? "" : " ", "[FLAGS]\n",
                            verb.summary, "\n\nexample:\n");
  for (const std::string_view command : examples(verb)) out += str_cat("  ", command, "\n");
  const std::vector<FlagSpec> table = verb.flags();
  out += format_flags(table, all);
  const auto num_advanced = std::count_if(
      table.begin(), table.end(), [](const FlagSpec& flag) { return flag.is_advanced && flag.refusal.empty(); });
  if (!all && num_advanced > 0) {
    out += str_cat("\n", num_advanced, " more flags: transept ", verb.name, " --help-all\n");
  }
  if (all) out += str_cat("\n", wrapped(kFlagRules, 0, kWidth), "\n");
  return out + exit_codes_text();
}

}  // namespace transept

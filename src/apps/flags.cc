#include "apps/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/ascii.h"
#include "base/checked_math.h"
#include "base/environment.h"

namespace transept {
namespace {

const FlagSpec* find(const std::vector<FlagSpec>& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const FlagSpec& flag) { return flag.name == name; });
  return at == table.end() ? nullptr : &*at;
}

const FlagSpec* find(const std::vector<FlagSpec>& table, char letter) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const FlagSpec& flag) { return flag.letter == letter; });
  return at == table.end() ? nullptr : &*at;
}

bool is_switch(const FlagSpec& flag) { return flag.value_name.empty() || flag.value_name.front() == '['; }

// "-f", and not a number or a file's name.
bool is_letter(std::string_view argument) {
  return argument.size() == 2 && argument[0] == '-' && std::isalpha(static_cast<unsigned char>(argument[1]));
}

// Python's spelling as well: True, False.
std::optional<bool> parse_switch(std::string_view given) {
  const std::string text = ascii_lower(given);
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off" || text.empty()) return false;
  return std::nullopt;
}

struct FlagArgument {
  const FlagSpec* flag = nullptr;
  std::optional<std::string> value;  // behind "="
};

Status unknown_flag(const std::vector<FlagSpec>& table, const std::string& name) {
  std::vector<std::string> names;
  for (const FlagSpec& flag : table) {
    if (flag.refusal.empty()) names.push_back(flag.name);
  }
  const std::string near = nearest(name, names);
  return invalid_argument("unknown flag --", name, near.empty() ? "" : "; did you mean --" + near + "?");
}

// "--name", "--name=value" or "-n".
StatusOr<FlagArgument> find_flag(const std::vector<FlagSpec>& table, const std::string& argument) {
  if (is_letter(argument)) {
    const FlagSpec* flag = find(table, argument[1]);
    if (flag != nullptr) return FlagArgument{flag, std::nullopt};
    return invalid_argument("unknown flag ", argument, "; flags begin with --, and -- ends them");
  }
  const size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  const FlagSpec* flag = find(table, name);
  if (flag == nullptr) return unknown_flag(table, name);
  FlagArgument found{flag, std::nullopt};
  if (equals != std::string::npos) found.value = argument.substr(equals + 1);
  return found;
}

// The same with its value, which may be the argument behind it: *i moves on to that.
StatusOr<FlagArgument> read_flag(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments,
                                 size_t* i) {
  ASSIGN_OR_RETURN(FlagArgument found, find_flag(table, arguments[*i]));
  if (found.value.has_value()) return found;
  const FlagSpec& flag = *found.flag;
  const std::string* next = *i + 1 < arguments.size() ? &arguments[*i + 1] : nullptr;
  const bool is_value = next != nullptr && !next->empty() && parse_switch(*next).has_value();
  if (is_switch(flag) && (flag.value_name.empty() || !is_value)) {
    found.value = "true";
    return found;
  }
  if (next == nullptr) return invalid_argument("--", flag.name, " wants a value: --", flag.name, " ", flag.value_name);
  found.value = *next;
  ++*i;
  return found;
}

// Wraps words at `width` columns, continuation lines indented.
std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (const std::string_view word : split(text, ' ')) {
    if (column + word.size() + 1 > width && column > indent) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

}  // namespace

StatusOr<Flags> Flags::parse(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments) {
  Flags flags;
  for (const FlagSpec& flag : table) {
    const char* value = std::getenv(environment_name(flag.name).c_str());
    if (value == nullptr) continue;
    flags.from_environment_.insert(flag.name);
    RETURN_IF_ERROR(flags.take(flag, value));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      flags.positional_.insert(flags.positional_.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                               arguments.end());
      break;
    }
    if (!is_letter(argument) && (argument.size() < 3 || argument.substr(0, 2) != "--")) {
      flags.positional_.push_back(argument);
      continue;
    }
    ASSIGN_OR_RETURN(FlagArgument given, read_flag(table, arguments, &i));
    if (flags.from_environment_.erase(given.flag->name) > 0) flags.all_values_.erase(given.flag->name);
    RETURN_IF_ERROR(flags.take(*given.flag, std::move(*given.value)));
  }
  return flags;
}

Status Flags::take(const FlagSpec& flag, std::string value) {
  const std::string& given = values_[flag.name] = std::move(value);
  if (flag.is_repeatable) all_values_[flag.name].push_back(given);
  if (is_switch(flag) && !parse_switch(given).has_value()) return error(flag.name, "expected true or false");
  if (flag.refusal.empty() || (is_switch(flag) ? parse_switch(given) == false : given == flag.harmless))
    return ok_status();
  return unimplemented(name_of(flag.name), ": ", flag.refusal);
}

std::string Flags::name_of(std::string_view name) const {
  return from_environment_.contains(std::string(name)) ? environment_name(name) : str_cat("--", name);
}

Status Flags::error(std::string_view name, std::string_view reason) const {
  return blame_environment(invalid_argument("--", name, " ", text_or(name, ""), ": ", reason), from_environment_);
}

std::optional<std::string> Flags::text(std::string_view name) const {
  const auto at = values_.find(std::string(name));
  if (at == values_.end()) return std::nullopt;
  return at->second;
}

std::vector<std::string> Flags::texts(std::string_view name) const {
  const auto at = all_values_.find(std::string(name));
  return at == all_values_.end() ? std::vector<std::string>() : at->second;
}

bool Flags::is_on(std::string_view name) const {
  const auto value = text(name);
  return value.has_value() && parse_switch(*value).value_or(false);
}

StatusOr<int64_t> Flags::integer(std::string_view name, int64_t min, int64_t max, int64_t fallback) const {
  const auto value = text(name);
  if (!value.has_value()) return fallback;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < min || number > max) {
    return this->error(name, str_cat("expected a whole number from ", min, " to ", max));
  }
  return number;
}

StatusOr<double> Flags::number(std::string_view name, double min, double max, double fallback) const {
  const auto value = text(name);
  if (!value.has_value()) return fallback;
  double number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || !(number >= min && number <= max)) {
    return this->error(name, str_cat("expected a number from ", min, " to ", max));
  }
  return number;
}

StatusOr<Flags::Range> Flags::range(std::string_view name, int64_t min, int64_t max, Range fallback) const {
  const auto value = text(name);
  if (!value.has_value()) return fallback;
  int64_t ends[2] = {};
  const char* at = value->data();
  const char* const end = at + value->size();
  bool is_read = false;
  for (int i = 0; i < 2; ++i) {
    const auto [stopped, problem] = std::from_chars(at, end, ends[i]);
    if (problem != std::errc() || ends[i] < min || ends[i] > max) break;
    if (i == 0) ends[1] = ends[0];
    is_read = stopped == end && ends[0] <= ends[1];
    if (stopped == end || *stopped != '-') break;
    at = stopped + 1;
  }
  if (!is_read) return error(name, str_cat("expected N or LO-HI, from ", min, " to ", max));
  return Range{ends[0], ends[1]};
}

StatusOr<bool> Flags::boolean(std::string_view name, bool fallback) const {
  const auto value = text(name);
  if (!value.has_value()) return fallback;
  const std::optional<bool> given = value->empty() ? std::nullopt : parse_switch(*value);
  return given.has_value() ? StatusOr<bool>(*given) : error(name, "expected true or false");
}

StatusOr<std::optional<uint64_t>> Flags::bytes(std::string_view name) const {
  const auto value = text(name);
  if (!value.has_value()) return std::optional<uint64_t>();
  const StatusOr<uint64_t> size = parse_bytes(*value);
  if (!size.ok()) return with_prefix(size.status(), name_of(name));
  return std::optional<uint64_t>(*size);
}

std::string format_flags(const std::vector<FlagSpec>& table) {
  constexpr size_t kHelpColumn = 38, kWidth = 110;
  std::string out;
  std::vector<std::string> groups;
  for (const FlagSpec& flag : table) {
    if (!flag.refusal.empty()) continue;
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) groups.push_back(flag.group);
  }
  for (const std::string& group : groups) {
    out += "\n" + group + ":\n";
    for (const FlagSpec& flag : table) {
      if (flag.group != group || !flag.refusal.empty()) continue;
      const std::string letter = flag.letter == 0 ? "" : str_cat("-", flag.letter, ", ");
      std::string line = "  " + letter + "--" + flag.name + (flag.value_name.empty() ? "" : " " + flag.value_name);
      if (line.size() + 2 > kHelpColumn)
        line += "\n" + std::string(kHelpColumn, ' ');
      else
        line.resize(kHelpColumn, ' ');
      const std::string text = flag.help + (flag.default_text.empty() ? "" : " (default: " + flag.default_text + ")");
      out += line + wrapped(text, kHelpColumn, kWidth) + "\n";
    }
  }
  return out;
}

}  // namespace transept

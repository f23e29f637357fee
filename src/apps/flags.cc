#include "apps/flags.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/ascii.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/environment.h"

namespace transept {
namespace {

const FlagSpec* find(const std::vector<FlagSpec>& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const FlagSpec& flag) { return flag.name == name; });
  return at == table.end() ? nullptr : &*at;
}

bool is_switch(std::string_view value_name) { return value_name.empty() || value_name.front() == '['; }
bool is_switch(const FlagSpec& flag) { return is_switch(flag.value_name); }

// "--name", "-n" and "-name", but no number, and not "-" or "--".
bool begins_flag(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  return argument[1] == '-' ? argument.size() > 2 : std::isalpha(static_cast<unsigned char>(argument[1])) != 0;
}

// Python's spelling as well: True, False.
std::optional<bool> parse_switch(std::string_view given) {
  const std::string text = ascii_lower(given);
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off" || text.empty()) return false;
  return std::nullopt;
}

// A flag as it was given, and what the tables have of it.
struct GivenFlag {
  std::string name;                  // with its dashes, underscores as dashes
  std::optional<std::string> value;  // behind "=", or the next argument
  const FlagSpec* own = nullptr;
  std::vector<const ForeignFlag*> rows;  // of this spelling
  std::string_view value_name;
};

GivenFlag find_flag(const std::vector<FlagSpec>& table, std::span<const ForeignFlag> foreign,
                    const std::string& argument) {
  GivenFlag given;
  const size_t equals = argument.find('=');
  given.name = argument.substr(0, equals);
  std::replace(given.name.begin(), given.name.end(), '_', '-');
  if (equals != std::string::npos) given.value = argument.substr(equals + 1);
  const bool is_long = given.name.starts_with("--");
  const auto own = std::find_if(table.begin(), table.end(), [&](const FlagSpec& flag) {
    if (is_long) return flag.name == std::string_view(given.name).substr(2);
    return given.name.size() == 2 && flag.letter == given.name[1];
  });
  if (own != table.end()) given.own = &*own;
  for (const ForeignFlag& row : foreign) {
    const std::vector<std::string_view> names = split(row.spellings, ' ');
    if (std::find(names.begin(), names.end(), given.name) != names.end()) given.rows.push_back(&row);
  }
  if (given.own != nullptr) given.value_name = given.own->value_name;
  if (given.own == nullptr && !given.rows.empty()) given.value_name = given.rows.front()->value_name;
  return given;
}

Status unknown_flag(const std::vector<FlagSpec>& table, const std::string& name) {
  if (!name.starts_with("--")) return invalid_argument("unknown flag ", name, "; -- ends the flags");
  std::vector<std::string> names;
  for (const FlagSpec& flag : table) {
    if (flag.refusal.empty()) names.push_back(flag.name);
  }
  const std::string near = nearest(name.substr(2), names);
  return invalid_argument("unknown flag ", name, near.empty() ? "" : "; did you mean --" + near + "?");
}

// The value may be the argument behind the flag: *i moves on to that.
Status read_value(const std::vector<std::string>& arguments, size_t* i, GivenFlag& given) {
  if (given.value.has_value()) return ok_status();
  const std::string* next = *i + 1 < arguments.size() ? &arguments[*i + 1] : nullptr;
  const bool is_value = next != nullptr && !next->empty() && parse_switch(*next).has_value();
  if (is_switch(given.value_name) && (given.value_name.empty() || !is_value)) {
    given.value = "true";
    return ok_status();
  }
  if (given.own != nullptr && !given.own->value_alone.empty()) {
    const std::vector<std::string_view> words = choices(*given.own);
    if (next == nullptr || std::ranges::find(words, *next) == words.end()) {
      given.value = given.own->value_alone;
      return ok_status();
    }
  }
  if (next == nullptr) {
    const std::string name = given.own == nullptr ? given.name : "--" + given.own->name;
    return invalid_argument(name, " wants a value: ", name, " ", given.value_name);
  }
  given.value = *next;
  ++*i;
  return ok_status();
}

bool is_about(const ForeignFlag& row, const std::string& value) {
  if (row.value.empty()) return true;
  if (const auto wanted = parse_switch(row.value); wanted.has_value() && is_switch(row.value_name)) {
    return parse_switch(value) == wanted;
  }
  return ::fnmatch(std::string(row.value).c_str(), value.c_str(), FNM_CASEFOLD) == 0;
}

Status unknown_value(const GivenFlag& given) {
  std::vector<std::string> values;
  for (const ForeignFlag* row : given.rows) {
    if (row->kind != ForeignFlag::Kind::kRefused) values.emplace_back(row->value);
  }
  return invalid_argument(given.name, " ", *given.value, ": one of ", join(values, ", "));
}

std::string with_value(std::string_view text, std::string_view value) {
  std::string out(text);
  if (const size_t at = out.find("{}"); at != std::string::npos) out.replace(at, 2, value);
  return out;
}

}  // namespace

void keep_common(std::vector<FlagSpec>& table, std::initializer_list<std::string_view> names) {
  for (FlagSpec& flag : table) flag.is_advanced = std::find(names.begin(), names.end(), flag.name) == names.end();
}

std::vector<std::string_view> choices(const FlagSpec& flag) {
  const auto is_word = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
  };
  std::vector<std::string_view> words = split(flag.value_name, '|');
  if (words.size() < 2 || !std::all_of(words.begin(), words.end(), is_word)) words.clear();
  return words;
}

StatusOr<Flags> Flags::parse(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments,
                             std::span<const ForeignFlag> foreign) {
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
    bool is_flag = begins_flag(argument);
    if (is_flag) {
      ASSIGN_OR_RETURN(is_flag, flags.take_flag(table, foreign, arguments, &i));
    }
    if (!is_flag) flags.positional_.push_back(argument);
  }
  return flags;
}

// False: it is a file's name.
StatusOr<bool> Flags::take_flag(const std::vector<FlagSpec>& table, std::span<const ForeignFlag> foreign,
                                const std::vector<std::string>& arguments, size_t* i) {
  GivenFlag given = find_flag(table, foreign, arguments[*i]);
  if (given.own == nullptr && given.rows.empty()) {
    if (!given.name.starts_with("--") && ::access(arguments[*i].c_str(), F_OK) == 0) return false;
    return unknown_flag(table, given.name);
  }
  RETURN_IF_ERROR(read_value(arguments, i, given));
  for (const ForeignFlag* row : given.rows) {
    if (!is_about(*row, *given.value)) continue;
    RETURN_IF_ERROR(take_foreign(table, *row, given.name, *given.value));
    return true;
  }
  if (given.own == nullptr) return unknown_value(given);
  RETURN_IF_ERROR(take_given(*given.own, *given.value));
  return true;
}

Status Flags::take_foreign(const std::vector<FlagSpec>& table, const ForeignFlag& row, std::string_view name,
                           std::string_view value) {
  const bool shows_value = !row.value.empty() && !is_switch(row.value_name);
  const std::string given = shows_value ? str_cat(name, " ", value) : std::string(name);
  if (row.kind == ForeignFlag::Kind::kRefused) return unimplemented(given, " (", row.tool, "): ", row.why);
  if (row.kind == ForeignFlag::Kind::kNothing) notes_.push_back(str_cat(given, " has no effect here: ", row.why));
  for (const std::string_view word : split(row.ours, ' ')) {
    if (word.empty()) continue;
    if (word == "MODEL={}") {
      model_ = value;
    } else if (!word.starts_with("--")) {
      positional_.push_back(with_value(word, value));
    } else {
      const size_t equals = word.find('=');
      const FlagSpec* own = find(table, word.substr(2, equals == word.npos ? word.npos : equals - 2));
      CHECK(own != nullptr, "foreign_flags() leaves rows out whose flags the verb lacks");
      RETURN_IF_ERROR(take_given(*own, equals == word.npos ? "true" : with_value(word.substr(equals + 1), value)));
    }
  }
  return ok_status();
}

void Flags::place_model(size_t index) {
  if (!model_.has_value()) return;
  positional_.insert(positional_.begin() + static_cast<std::ptrdiff_t>(std::min(index, positional_.size())), *model_);
  model_.reset();
}

// What is given replaces what its environment variable says.
Status Flags::take_given(const FlagSpec& flag, std::string value) {
  if (from_environment_.erase(flag.name) > 0) all_values_.erase(flag.name);
  return take(flag, std::move(value));
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

}  // namespace transept

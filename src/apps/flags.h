// The command line, from one table: parsing, help, environment variables, suggestions. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct FlagSpec {
  std::string name;          // "block-size"
  std::string value_name;    // "TOKENS"; "" for a switch; "[BOOL]" for one that may have its value behind it
  std::string default_text;  // shown in the help; "" for none
  std::string help;          // one line
  std::string group;         // heading in the help
  // Why a known flag is refused (kUnimplemented), by its name; "": it is not. Such a flag is not in the help.
  std::string refusal = {};
  std::string harmless = {};   // the value that asks for nothing, and is taken; switches: false is
  char letter = 0;             // 'f' for -f; 0: none
  bool is_repeatable = false;  // every one counts (Flags::texts); of others the last
};

class Flags final {
 public:
  // Reads arguments (after the verb) by the table; what is no flag is positional, "--" ends flags. Underscores may
  // stand for dashes. A flag that is not given may come from its environment variable. Errors: an unknown flag
  // (suggests the nearest), a missing value, a switch with a value that is no boolean, a flag that is refused.
  static StatusOr<Flags> parse(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments);

  const std::vector<std::string>& positional() const { return positional_; }
  // For verbs with a verb of their own (`bench latency MODEL`): the rest.
  Flags without_first_positional() const {
    Flags rest = *this;
    rest.positional_.erase(rest.positional_.begin());
    return rest;
  }
  bool has(std::string_view name) const { return values_.contains(std::string(name)); }
  std::optional<std::string> text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string fallback) const {
    return text(name).value_or(std::move(fallback));
  }
  // Every value of a flag that may be repeated, in order; its variable gives one.
  std::vector<std::string> texts(std::string_view name) const;
  bool is_on(std::string_view name) const;  // a switch

  // Flags whose value is their environment variable's.
  const std::set<std::string>& from_environment() const { return from_environment_; }
  // "--block-size", or "TRANSEPT_BLOCK_SIZE" where that gave the value.
  std::string name_of(std::string_view name) const;

  // Errors name the flag (or its variable), what was given and the range.
  StatusOr<int64_t> integer(std::string_view name, int64_t min, int64_t max, int64_t fallback) const;
  StatusOr<double> number(std::string_view name, double min, double max, double fallback) const;
  // "N", or "LO-HI".
  struct Range {
    int64_t low = 0, high = 0;
  };
  StatusOr<Range> range(std::string_view name, int64_t min, int64_t max, Range fallback) const;
  StatusOr<bool> boolean(std::string_view name, bool fallback) const;
  StatusOr<std::optional<uint64_t>> bytes(std::string_view name) const;

 private:
  Status error(std::string_view name, std::string_view reason) const;  // "--block-size 0: REASON"
  Status take(const FlagSpec& flag, std::string value);

  std::map<std::string, std::string> values_;                   // the last of each
  std::map<std::string, std::vector<std::string>> all_values_;  // of flags that may be repeated
  std::set<std::string> from_environment_;
  std::vector<std::string> positional_;
};

// The flags of `table` under their groups, aligned for 100 columns.
std::string format_flags(const std::vector<FlagSpec>& table);

}  // namespace transept

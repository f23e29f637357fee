// The command line, from one table: parsing, help, environment variables, suggestions. A value. Not thread-safe.
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
  std::string value_name;    // "TOKENS"; "" for a switch; "[BOOL]" for a switch with an optional value
  std::string default_text;  // shown in the help; "" for none
  std::string help;          // one line
  std::string group;         // heading in the help
  // Why a known flag is refused (kUnimplemented), by its name; "": it is accepted. The help omits refused flags.
  std::string refusal = {};
  std::string harmless = {};   // the value of a refused flag that is accepted, as it asks for nothing; switches: false
  char letter = 0;             // 'f' for -f; 0: none
  bool is_repeatable = false;  // all values count (Flags::texts); else the last
};

class Flags final {
 public:
  // Parses `arguments` (after the verb) by the table. Arguments that are not flags are positional, and "--" ends the
  // flags. Underscores may replace dashes. A flag that is not given may come from its environment variable. Errors: an
  // unknown flag (suggests the nearest), a missing value, a switch with a value that is no boolean, a refused flag.
  static StatusOr<Flags> parse(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments);

  const std::vector<std::string>& positional() const { return positional_; }
  // The rest, for verbs with a verb of their own (`bench latency MODEL`).
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
  // All values of a repeatable flag, in order; its environment variable gives one.
  std::vector<std::string> texts(std::string_view name) const;
  bool is_on(std::string_view name) const;  // a switch

  // Flags whose value came from their environment variable.
  const std::set<std::string>& from_environment() const { return from_environment_; }
  // "--block-size", or "TRANSEPT_BLOCK_SIZE" if that gave the value.
  std::string name_of(std::string_view name) const;

  // Errors name the flag (or its variable), the given value and the range.
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

  std::map<std::string, std::string> values_;                   // the last value of each flag
  std::map<std::string, std::vector<std::string>> all_values_;  // of repeatable flags
  std::set<std::string> from_environment_;
  std::vector<std::string> positional_;
};

// Formats the flags of `table` under their groups, wrapped at 110 columns.
std::string format_flags(const std::vector<FlagSpec>& table);

}  // namespace transept

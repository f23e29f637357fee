// The command line, from one table: parsing, environment variables, suggestions. Flags of other tools are rows of a
// second table (foreign_flags.h), which says what stands in their place. A value. Not thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct FlagSpec {
  std::string name;  // "block-size"
  // "TOKENS"; "auto|cpu": words to choose from; "" for a switch; "[BOOL]" for a switch with an optional value
  std::string value_name;
  std::string default_text;  // shown in the help; "" for none
  std::string help;          // one line
  std::string group;         // heading in the help
  // Why a known flag is refused (kUnimplemented), by its name; "": it is accepted. The help omits refused flags.
  std::string refusal = {};
  std::string harmless = {};   // the value of a refused flag that is accepted, as it asks for nothing; switches: false
  char letter = 0;             // 'f' for -f; 0: none
  bool is_repeatable = false;  // all values count (Flags::texts); else the last
  bool is_advanced = false;    // --help leaves the flag out, --help-all has it
  std::string value_alone = {};  // of a flag with words to choose from: its value where none follows; "": one must
};

// Marks every flag that is not named here as advanced.
void keep_common(std::vector<FlagSpec>& table, std::initializer_list<std::string_view> names);

// Returns the words of value_name if there are several ("auto|cpu"), else an empty list.
std::vector<std::string_view> choices(const FlagSpec& flag);

// A flag of another tool, and what it is here. Rows with the same spelling differ by value; the first that fits holds.
struct ForeignFlag {
  enum class Kind : uint8_t {
    kStandsFor,  // `ours` is read in its place; "": the flag asks for what is done anyway
    kNothing,    // accepted, with a note that it has no effect: `why`
    kRefused,    // an error that names the remedy: `why`
  };
  Kind kind = Kind::kStandsFor;
  std::string_view tool;        // "whisper.cpp"
  std::string_view spellings;   // "-otxt --output-txt": with dashes also where the tool has underscores
  std::string_view value_name;  // as FlagSpec::value_name
  std::string_view value;       // a pattern (*, ?, [a-z]; any case) for values that the row is about; "": all
  // Flags as "--name" or "--name=VALUE", with blanks between them. {} is the given value. "{}" alone is an argument
  // that is no flag, and "MODEL={}" names the model.
  std::string_view ours;
  std::string_view why;
  std::string_view verbs;  // with blanks between; "": every verb with a MODEL that has the flags of `ours`
};

class Flags final {
 public:
  // Parses `arguments` (after the verb) by the table, and flags of other tools by the rows of `foreign`. Arguments that
  // are not flags are positional, and "--" ends the flags. An argument that begins with a dash and a letter is a flag,
  // unless it is unknown and there is a file of that name. Underscores may replace dashes. A flag that is not given may
  // come from its environment variable. Errors: an unknown flag (suggests the nearest), a missing value, a switch with
  // a value that is no boolean, a refused flag, a value that no row of a foreign flag is about (lists the values).
  static StatusOr<Flags> parse(const std::vector<FlagSpec>& table, const std::vector<std::string>& arguments,
                               std::span<const ForeignFlag> foreign = {});

  const std::vector<std::string>& positional() const { return positional_; }
  // Puts the model that a foreign flag named (MODEL={}) at its place among the positional arguments.
  void place_model(size_t index);
  // Remarks on foreign flags that have no effect, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
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
  Status take_given(const FlagSpec& flag, std::string value);
  StatusOr<bool> take_flag(const std::vector<FlagSpec>& table, std::span<const ForeignFlag> foreign,
                           const std::vector<std::string>& arguments, size_t* i);
  Status take_foreign(const std::vector<FlagSpec>& table, const ForeignFlag& row, std::string_view name,
                      std::string_view value);

  std::map<std::string, std::string> values_;                   // the last value of each flag
  std::map<std::string, std::vector<std::string>> all_values_;  // of repeatable flags
  std::set<std::string> from_environment_;
  std::vector<std::string> positional_;
  std::optional<std::string> model_;
  std::vector<std::string> notes_;
};

}  // namespace transept

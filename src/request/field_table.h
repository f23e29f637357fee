// The one table of request fields, of JSON lines and of HTTP bodies. Parsing, range checks, error texts, documentation,
// openapi.json and --help come from it: a field is one row. Immutable data: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "request/request.h"

namespace transept {

enum class FieldKind : uint8_t {
  kId,             // a string or a number
  kPrompt,         // an encoder/decoder prompt, or one side of it
  kInt,            // a whole number, min..max
  kNumber,         // min..max
  kBool,           //
  kString,         // not empty
  kText,           // any string
  kTexts,          // a string or a list of 1 to max_items
  kWord,           // one of `words`
  kWords,          // a list of such, or one
  kStrings,        // a string or a list of them; none empty or longer than kMaxStringBytes; at most max_items
  kTokenId,        // a whole number from 0
  kTokenIds,       // a list of them; at most max_items
  kTokenIdOrList,  // one or a list of them; at most max_items
  kTokenIdLists,   // a list of non-empty lists of them; at most max_items, each at most kMaxBadWordTokens long
  kLogitBias,      // an object: token id as a string -> number, min..max; at most max_items
  kEarlyStopping,  // true, false or "never"
  kAny,            // not looked at: a field that is refused unless it is null, false or the number min
  kIgnored,        // not looked at, and taken
  kStreamOptions,  // an object; its member of the name words[0] is true or false, others are not looked at
  kFile,           // a file of a form
};
inline constexpr size_t kMaxBadWordTokens = 1024;
inline constexpr size_t kMaxStringBytes = 8192;  // each prompt of a list, and the search for it in a stream, has copies

// Where a row's value goes; monostate: read by code of its own (id and prompts), or refused.
using FieldSlot =
    std::variant<std::monostate, std::optional<int32_t>*, std::optional<int64_t>*, std::optional<float>*,
                 std::optional<bool>*, std::optional<std::string>*, std::optional<std::vector<std::string>>*,
                 std::optional<std::vector<int32_t>>*, std::optional<std::vector<std::vector<int32_t>>>*,
                 std::optional<std::map<int32_t, float>>*, std::optional<SamplingParams::EarlyStopping>*>;

// Which models know the field.
enum class FieldModels : uint8_t { kAll, kSpeech };

struct FieldSpec {
  std::string_view name;
  FieldKind kind;
  FieldSlot (*slot)(ParsedRequest&);
  std::string_view doc;  // one line, for --help and the API's description
  double min = 0;
  double max = 0;
  bool min_excluded = false;
  size_t max_items = 0;
  FieldModels models = FieldModels::kAll;
  FieldRoutes routes = field_routes::kGeneration;
  int32_t RequestLimits::*limit = nullptr;  // stands for max, or for max_items
  std::span<const std::string_view> words = {};
  bool is_required = false;
  bool each_once =
      false;  // of kTokenIds: kept ascending and once each, so that work does not grow with what is repeated
  // Why a value other than null and false is refused (kUnimplemented); "": the field is supported.
  std::string_view refusal = {};
};

// Every field of a JSON line, in the order of API.md.
std::span<const FieldSpec> request_fields();

// Every field that one of `routes` may carry.
std::vector<const FieldSpec*> fields_of(FieldRoutes routes);

// The row of that name that one of `routes` may carry, or null.
const FieldSpec* find_field(std::string_view name, FieldRoutes routes = field_routes::kJsonLines);

// The row as these limits make it.
FieldSpec with_limits(const FieldSpec& field, const RequestLimits& limits);

// "a whole number from 1 to 16": what a field takes, for error texts and documentation.
std::string describe(const FieldSpec& field);

}  // namespace transept

// The one table of request fields, of JSON lines and of HTTP bodies. Parsing, range checks, error texts, openapi.json
// and --help come from it. A field is one row; a field that differs between routes has a row for each form. Immutable
// data: thread-safe.
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
  kMessages,       // a list of the messages of a chat
  kInt,            // a whole number, min..max
  kNumber,         // min..max
  kBool,           //
  kString,         // not empty; at most max_items bytes, unless that is 0
  kText,           // any string
  kTexts,          // a string or a list of 1 to max_items
  kWord,           // one of `words`
  kWords,          // one of `words`, or a list of at most max_items
  kStrings,        // a string or a list of at most max_items; none empty or longer than kMaxStringBytes
  kTokenId,        // a whole number from 0 to INT32_MAX
  kTokenIds,       // a list of at most max_items token ids
  kTokenIdOrList,  // a token id, or a list of at most max_items
  kTokenIdLists,   // a list of at most max_items lists, each of 1 to kMaxBadWordTokens token ids
  kLogitBias,      // an object: token id as a string -> number, min..max; at most max_items
  kEarlyStopping,  // true, false or "never"
  kPrediction,     // an object: type "content", and content: a text, or a list of parts of text
  kAny,            // not read: a field that is refused unless it is null, false, the number min, or `accepted`
  kIgnored,        // not read, and accepted
  kStreamOptions,  // an object; its member words[0] is true or false, other members are not read
  kChunking,       // "auto", or an object with type "server_vad"; its other members are not read
  kFile,           // a file of a form; the caller reads it
};
inline constexpr size_t kMaxBadWordTokens = 1024;
inline constexpr size_t kMaxStringBytes = 8192;  // bounded as each prompt of a list and its stream's search hold copies

// Where a row's value goes. monostate: other code reads the value (id, prompts, files), or it is ignored or refused.
using FieldSlot =
    std::variant<std::monostate, std::optional<int32_t>*, std::optional<int64_t>*, std::optional<float>*,
                 std::optional<bool>*, std::optional<std::string>*, std::optional<std::vector<std::string>>*,
                 std::optional<std::vector<int32_t>>*, std::optional<std::vector<std::vector<int32_t>>>*,
                 std::optional<std::map<int32_t, float>>*, std::optional<SamplingParams::EarlyStopping>*>;

// The models that have the field. Request fields of kSpeech have no command-line flag.
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
  int32_t RequestLimits::*limit = nullptr;  // replaces max_items where that is above 0, else max (with_limits)
  std::span<const std::string_view> words = {};
  bool is_required = false;
  bool each_once = false;  // of kTokenIds: sorted and made unique, so that work does not grow with repeated ids
  // Why the field is refused (kUnimplemented), unless its value is null, false, the number min, or `accepted`; "": it
  // is supported.
  std::string_view refusal = {};
  std::string_view accepted = {};  // a value of a refused field that asks for nothing, as Json::dump() writes it
};

// Returns the rows of JSON lines, in the order of the table.
std::span<const FieldSpec> request_fields();

// Returns the rows that at least one of `routes` may carry, in the order of the table.
std::vector<const FieldSpec*> fields_of(FieldRoutes routes);

// Returns the first row of this name that one of `routes` may carry, or null.
const FieldSpec* find_field(std::string_view name, FieldRoutes routes = field_routes::kJsonLines);

// Returns a copy of the row with its bound replaced from `limits`.
FieldSpec with_limits(const FieldSpec& field, const RequestLimits& limits);

// Describes the values that a field takes, for error texts: "a whole number from 1 to 16".
std::string describe(const FieldSpec& field);

}  // namespace transept

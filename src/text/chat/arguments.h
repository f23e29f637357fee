// Arguments of filters, tests, methods and functions, and how they meet parameters. Values.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/heap.h"

namespace transept::jinja {

struct Arguments {
  std::vector<Value> places;
  std::vector<std::pair<std::string_view, Value>> names;  // different from one another
};

// A parameter that has no name in calls has "".
struct Parameter {
  std::string_view name;
  bool required = false;
};

// Returns a value for each parameter, kMissing for one that is not given. `function` is for messages. Errors
// (kInvalidArgument): too many arguments, one that is missing, or of an unknown name.
StatusOr<std::vector<Value>> bind(std::string_view function, const Arguments& arguments,
                                  std::initializer_list<Parameter> parameters);

// What a bound argument must be. kMissing gives the fallback. Errors: another type.
StatusOr<int64_t> integer_or(const Value& value, int64_t fallback, std::string_view what);
StatusOr<std::string_view> text_of(const Value& value, std::string_view what);

}  // namespace transept::jinja

// The functions that templates find without defining them. Functions; the heap is the caller's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/chat/arguments.h"
#include "text/chat/heap.h"

namespace transept::jinja {

enum class Function : int64_t {
  kRange,  // at most kMaxRange numbers
  kDict,
  kNamespace,  // names that begin with an underscore are refused
  kRaiseException,
  kStrftimeNow,
  kUnsupported,  // cycler, joiner, lipsum: an error where it is called
};

inline constexpr uint64_t kMaxRange = 100'000;

std::optional<Function> find_function(std::string_view name);

// `now`: what strftime_now formats, in local time. Errors: kInvalidArgument: arguments that Python refuses; the message
// of raise_exception.
StatusOr<Value> call_function(Heap& heap, Function function, const Arguments& arguments,
                              std::chrono::system_clock::time_point now);

}  // namespace transept::jinja

// CHECK: what cannot happen. A failed CHECK prints where and what, and aborts; it is never reachable from user input
// (what can happen returns absl::Status).
#pragma once

#include <string_view>

#include "base/strings.h"

namespace transept {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);
}  // namespace transept

// CHECK(condition) or CHECK(condition, part, part, ...): the parts are joined as by str_cat.
#define CHECK(condition, ...)                                                                     \
  do {                                                                                            \
    if (!(condition)) [[unlikely]] {                                                              \
      ::transept::check_failed(__FILE__, __LINE__, #condition, ::transept::str_cat(__VA_ARGS__)); \
    }                                                                                             \
  } while (false)

// A CHECK in debug builds only, for the inside of loops.
#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false)
#else
#define DCHECK(condition, ...) CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

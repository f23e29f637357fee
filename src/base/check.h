// CHECK asserts an invariant. A failed CHECK prints its place and condition to standard error and aborts. User input
// must never reach one: errors that can happen return absl::Status (base/status.h). Thread-safe.
#pragma once

#include <string_view>

#include "base/strings.h"

namespace transept {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);
}  // namespace transept

// CHECK(condition) or CHECK(condition, part, part, ...): str_cat joins the parts to the message. Evaluates them only
// when it fails.
#define CHECK(condition, ...)                                                                     \
  do {                                                                                            \
    if (!(condition)) [[unlikely]] {                                                              \
      ::transept::check_failed(__FILE__, __LINE__, #condition, ::transept::str_cat(__VA_ARGS__)); \
    }                                                                                             \
  } while (false)

// A CHECK in debug builds only, for inner loops. With NDEBUG it evaluates nothing.
#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false)
#else
#define DCHECK(condition, ...) CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

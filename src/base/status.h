// Errors: functions that can fail return absl::Status or absl::StatusOr. An error about one field of a request or a
// file also carries the name of the field (`error_param`), so that every surface can report both. Values; the functions
// are pure: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strings.h"

namespace transept {

using absl::Status;
using absl::StatusOr;

inline Status ok_status() { return absl::OkStatus(); }

// Returns kInvalidArgument about one field. `param` is its name, or a path that begins with it ("stop[0]").
Status field_error(std::string_view param, std::string_view message);

// Adds the field to an error that has none. Returns any other status unchanged.
Status with_param(Status status, std::string_view param);

// Returns the field of the error, or "".
std::string error_param(const Status& status);

inline std::string error_message(const Status& status) { return std::string(status.message()); }

// Returns the error with `prefix` before its message ("model.safetensors: header is not JSON"), and the same field.
Status with_prefix(const Status& status, std::string_view prefix);

template <typename... Parts>
Status invalid_argument(const Parts&... parts) {
  return absl::InvalidArgumentError(str_cat(parts...));
}
template <typename... Parts>
Status not_found(const Parts&... parts) {
  return absl::NotFoundError(str_cat(parts...));
}
template <typename... Parts>
Status resource_exhausted(const Parts&... parts) {
  return absl::ResourceExhaustedError(str_cat(parts...));
}
template <typename... Parts>
Status unimplemented(const Parts&... parts) {
  return absl::UnimplementedError(str_cat(parts...));
}

}  // namespace transept

// Returns from the calling function with the error of `expression`, if it has one.
#define RETURN_IF_ERROR(expression)                             \
  do {                                                          \
    if (::absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                           \
    }                                                           \
  } while (false)

#define TRANSEPT_CONCAT_INNER(a, b) a##b
#define TRANSEPT_CONCAT(a, b) TRANSEPT_CONCAT_INNER(a, b)
// Assigns the value of `expression` to `target`, which may be a declaration, or returns its error. Three statements:
// needs a block of its own under if or for.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL(TRANSEPT_CONCAT(status_or_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_IMPL(temporary, target, expression) \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return temporary.status();            \
  target = std::move(temporary).value()

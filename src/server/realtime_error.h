// Errors of /v1/realtime in OpenAI's terms, whatever the dialect. Values and pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

// `code` is one of error_kind (request/result_json.h) or of docs/live.md.
struct RealtimeError {
  std::string type = "invalid_request_error";
  std::string code = "invalid_value";
  std::string message;
  std::string param = {};  // the field's path ("session.audio.input.format"); "": none
};
inline constexpr std::string_view kInternalError = "internal_error";
using RealtimeFailure = std::optional<RealtimeError>;

// About one field: "PATH: MESSAGE".
RealtimeError field_failure(std::string_view path, std::string_view message, std::string_view code = "invalid_value");
// A field that is known and not served.
RealtimeError refused_field(std::string_view path, std::string_view message);

// As error_kind says. An internal error has a fixed message that tells nothing of the server; the caller logs it.
RealtimeError realtime_error(const Status& status);

}  // namespace transept

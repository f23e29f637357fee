#include "server/realtime_error.h"

#include "request/result_json.h"

namespace transept {

RealtimeError field_failure(std::string_view path, std::string_view message, std::string_view code) {
  return {.code = std::string(code), .message = str_cat(path, ": ", message), .param = std::string(path)};
}

RealtimeError refused_field(std::string_view path, std::string_view message) {
  return field_failure(path, message, "unsupported");
}

RealtimeError realtime_error(const Status& status) {
  const ErrorKind kind = error_kind(status);
  const bool is_internal = kind.http_status == 500;
  return {.type = kind.type,
          .code = kind.code,
          .message = is_internal ? "internal error; the server's log says more" : error_message(status),
          .param = is_internal ? std::string() : error_param(status)};
}

}  // namespace transept

// Formats errors as HTTP answers. Thread-safe functions.
#pragma once

#include <string_view>

#include "base/status.h"
#include "net/http.h"
#include "server/admission.h"

namespace transept {

// Returns {"error": {"message", "type", "param", "code"}} with the HTTP status of error_kind (request/result_json.h).
// 429 and 503 have Retry-After (from `admission`), 504 has x-should-retry: false. 500 has a fixed message that reveals
// nothing of the server; the caller logs the error.
HttpResponse error_response(const Status& status, const Admission& admission);
// Returns other HTTP statuses (405, 408, 413, ...) in the same form.
HttpResponse http_error_response(int http_status, std::string_view message, std::string_view code,
                                 std::string_view param = {});

}  // namespace transept

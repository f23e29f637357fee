// Errors as HTTP answers. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "net/http.h"
#include "server/admission.h"

namespace transept {

// {"error": {"message", "type", "param", "code"}} with the status of error_kind (request/result_json.h); 429 and 503
// with Retry-After, 504 with x-should-retry: false. What is our own fault (500) says nothing of ourselves; the log
// does.
HttpResponse error_response(const Status& status, const Admission& admission);
// Other statuses of HTTP in the same form: 405, 408, 413, ...; "code" is `code`.
HttpResponse http_error_response(int http_status, std::string_view message, std::string_view code,
                                 std::string_view param = {});

}  // namespace transept

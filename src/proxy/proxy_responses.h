// Errors that a proxy answers itself, and those of instances. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace transept {

// As a server of the API answers an error; 429 and 503 say when to come again.
HttpResponse proxy_error(const Status& status);
// The message of an error's body, as a server of the API answers it; empty: it is none.
std::string proxy_error_words(std::string_view body);

}  // namespace transept

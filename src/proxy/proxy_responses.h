// Errors that a proxy answers itself. Pure functions: thread-safe.
#pragma once

#include "base/status.h"
#include "net/http.h"

namespace transept {

// As a server of the API answers an error; 429 and 503 say when to come again.
HttpResponse proxy_error(const Status& status);

}  // namespace transept

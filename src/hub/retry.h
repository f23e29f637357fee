// When a request that failed is sent again. Pure functions: thread-safe.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>

#include "net/http.h"

namespace transept {

// Answers that another try may change: 408, 429, and 5xx but 501 and 505.
bool is_retryable_status(int status);

// Returns how long the server asks to wait: Retry-After (seconds, or a date; `now` is the time), else the `t` of a
// RateLimit header whose `r` is 0. Unset: it does not say, or says it otherwise.
std::optional<std::chrono::seconds> requested_wait(const HttpHeaders& headers, std::time_t now);

// Returns the wait before try number `failures` + 1 of a server that asks for none: 250 ms, doubled each time, at most
// 8 s.
std::chrono::milliseconds backoff(int failures);

}  // namespace transept

// What a proxy counts, in Prometheus' text format: transept_proxy_* (docs/scaling.md). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "proxy/decoder_pool.h"

namespace transept {

struct ProxyCounts {
  int64_t num_answered = 0;   // requests whose answer came from an instance, whatever its status
  int64_t num_failed = 0;     // answered by the proxy itself, or cut short
  int64_t num_given_up = 0;   // the client went first
  int64_t num_again = 0;      // tries after the first of a request
  int64_t num_forwarded = 0;  // requests that were not refused at once
  int64_t num_held = 0;       // tries whose inputs were encoded before they were forwarded
  int64_t num_let_go = 0;     // that were to be held, and were forwarded as they came
  int64_t num_opened_websockets = 0;
  // Now:
  int64_t num_in_work = 0;     // requests
  int64_t num_body_bytes = 0;  // of their bodies, and of those that arrive
  int64_t num_websockets = 0;  // that are open
};

std::string proxy_metrics_text(const ProxyCounts& counts, const DecoderPool::States& instances);

}  // namespace transept

// Writes the access log to stderr: one line a request, as text for people or JSON for machines. Owned by Server.
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"
#include "net/http.h"

namespace transept {

class AccessLog final {
 public:
  struct Options {
    bool as_json = false;
    bool is_on = true;  // of log_done; other lines are always written
    bool with_prompts = false;
  };
  explicit AccessLog(const Options& options) : options_(options) {}

  // Logs a request that has ended: method, path (never the query), status (499: the client went), seconds, bytes, peer,
  // request id, and the trace id of a valid traceparent (W3C Trace Context). Escapes control characters.
  void log_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) const;
  // Logs an internal error, whose message the client does not receive.
  void log_internal(std::string_view request_id, std::string_view what) const;
  // Logs at most 2,000 characters of a request's body, or of a form's fields. Only with with_prompts.
  void log_prompt(std::string_view request_id, std::string_view what) const;

 private:
  const Options options_;
};

// Writes a notice of the program as a line of JSON: the sink for set_log_sink (base/log_sink.h) if logs are JSON.
void write_json_notice(LogLevel level, std::string_view message);

}  // namespace transept

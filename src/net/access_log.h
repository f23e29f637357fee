// Writes the access log to stderr: one line a request, as text for people or JSON for machines. Owned by a server or a
// proxy. Thread-safe.
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
  // Logs an encode that another instance has asked for, as `transfer` and `input_id`, for a client's request.
  struct EncodeLine {
    std::string_view transfer;
    uint32_t input_id = 0;
    std::string_view consumer;  // the instance
    int32_t num_positions = 0;
    std::string_view outcome;
    double seconds = 0;
    std::string_view request_id, traceparent;  // the client's; empty: not known
  };
  void log_encode(const EncodeLine& encode) const;
  // Logs an internal error, whose message the client does not receive.
  void log_internal(std::string_view request_id, std::string_view what) const;
  // Logs at most 2,000 characters of a request's body, or of a form's fields. Only with with_prompts.
  void log_prompt(std::string_view request_id, std::string_view what) const;

 private:
  const Options options_;
};

// The traceparent of a request, if it is valid (W3C Trace Context, 3.2); else empty.
std::string_view traceparent_of(const HttpRequest& request);

// Writes a notice of the program as a line of JSON: the sink for set_log_sink (base/log_sink.h) if logs are JSON.
void write_json_notice(LogLevel level, std::string_view message);

}  // namespace transept

// One line for every request that was answered, on stderr: text for people or JSON for machines. Thread-safe.
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
    bool is_on = true;
    bool with_prompts = false;
  };
  explicit AccessLog(const Options& options) : options_(options) {}

  // Method, path (never the query), status, seconds, bytes, peer, request id, and the trace id of a valid traceparent
  // (W3C Trace Context). Control characters are escaped. A client that went is status 499.
  void log_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) const;
  // What went wrong inside, which the client is not told.
  void log_internal(std::string_view request_id, std::string_view what) const;
  // Only with_prompts: the request's body as parsed, at most 2,000 characters.
  void log_prompt(std::string_view request_id, std::string_view what) const;

 private:
  const Options options_;
};

// A notice of the program as a line of JSON: what set_log_sink (base/log_sink.h) is given where logs are JSON.
void write_json_notice(LogLevel level, std::string_view message);

}  // namespace transept

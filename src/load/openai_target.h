// An OpenAI-compatible server as the target of a load. Thread-safe; a worker belongs to one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "load/load_driver.h"
#include "load/load_requests.h"
#include "net/http_client.h"

namespace transept {

class OpenAiTarget final : public Target {
 public:
  struct Options {
    HttpUrl url;          // path: of the API, "/v1"
    std::string api_key;  // "": none
    LoadEndpoint endpoint = LoadEndpoint::kCompletions;
    bool stream = true;
    std::chrono::milliseconds timeout{600000};
  };

  // Borrows the requests and the clock.
  OpenAiTarget(Options options, const LoadRequests& requests, const Clock& clock)
      : options_(std::move(options)), requests_(requests), clock_(clock) {}

  std::unique_ptr<Worker> make_worker() override;

 private:
  Options options_;
  const LoadRequests& requests_;
  const Clock& clock_;
};

// The "Authorization" header, if there is a key.
HttpHeaders authorization(const std::string& api_key);

// Names the failure of an HttpClient status: "timeout", "cannot connect", ...
std::string failure_kind(const Status& status);

}  // namespace transept

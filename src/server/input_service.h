// The inputs that a decode instance asks to be encoded, for encode instances: GET /v1/inputs/{request_id}/{input_id}
// gives one (application/x-transept-features), POST refuses it. Routes of the server's API; and a service of its own
// for a verb that is a decode instance without a server. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "disagg/ticket_asker.h"
#include "encoder_cache/ec_secret.h"
#include "net/http.h"
#include "net/http_service.h"

namespace transept {

// 401 unless another instance has sent the request (disagg/instance_calls.h); nullopt then. `secret` may be null.
std::optional<HttpResponse> refuse_strangers(const EcSecret* secret, const HttpRequest& request);

// Answers GET and POST of kInputsPath. 401: of no instance; 404: the input is not asked for (any longer).
HttpResponse answer_input_request(const EcSecret* secret, TicketAsker& asker, const HttpRequest& request);

class InputService final : public HttpService {
 public:
  explicit InputService(std::shared_ptr<const EcSecret> secret) : secret_(std::move(secret)) {}

  // Borrowed; outlives the server. Null, as it is at first: 503.
  void set_asker(TicketAsker* asker) { asker_ = asker; }

  Decision on_head(const HttpRequest& request) override;
  void on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) override;
  HttpResponse on_error(int status, const std::string& reason, const std::string& request_id) override;
  void on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) override;

 private:
  const std::shared_ptr<const EcSecret> secret_;
  std::atomic<TicketAsker*> asker_ = nullptr;
};

}  // namespace transept

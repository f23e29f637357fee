#include "server/input_service.h"

#include <utility>
#include <vector>

#include "disagg/input_codec.h"
#include "disagg/instance_calls.h"
#include "server/http_errors.h"

namespace transept {
namespace {

constexpr size_t kMaxBodyBytes = 64 << 10;

}  // namespace

std::optional<HttpResponse> refuse_strangers(const EcSecret* secret, const HttpRequest& request) {
  if (is_from_instance(secret, request)) return std::nullopt;
  return http_error_response(
      401,
      secret == nullptr ? "this path is for other instances on this machine; --ec-secret-file opens it to others"
                        : "this path is for other instances of the same --ec-secret-file",
      "not_an_instance");
}

HttpResponse answer_input_request(const EcSecret* secret, TicketAsker& asker, const HttpRequest& request) {
  if (auto refusal = refuse_strangers(secret, request)) return *std::move(refusal);
  const std::optional<EcInput> input = parse_inputs_path(request.path);
  const std::shared_ptr<const EncoderItem> item = input.has_value() ? asker.find(*input) : nullptr;
  if (item == nullptr) return http_error_response(404, "the input is not asked for", "not_found");
  if (request.method == "POST") {
    Status why;
    if (const Status parsed = parse_refusal(request.body, why); !parsed.ok()) {
      return http_error_response(400, error_message(parsed), "invalid_value", error_param(parsed));
    }
    asker.refuse(*input, why);
    return {.body = "{}"};
  }
  std::vector<std::byte> bytes;
  encode_input(*item, bytes);
  HttpResponse response;
  response.content_type = kFeaturesContentType;
  response.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return response;
}

HttpService::Decision InputService::on_head(const HttpRequest& request) {
  Decision decision;
  decision.max_body_bytes = kMaxBodyBytes;
  const bool is_method = request.method == "GET" || request.method == "HEAD" || request.method == "POST";
  if (!is_method || !request.path.starts_with(kInputsPath)) {
    decision.refusal = http_error_response(404, "there is no such path", "not_found");
  }
  return decision;
}

void InputService::on_request(HttpRequest request, std::shared_ptr<void> /*ticket*/,
                              std::shared_ptr<Responder> responder) {
  TicketAsker* const asker = asker_;
  if (asker == nullptr) return responder->respond(http_error_response(503, "the model is loading", "loading"));
  responder->respond(answer_input_request(secret_.get(), *asker, request));
}

HttpResponse InputService::on_error(int status, const std::string& reason, const std::string& /*request_id*/) {
  return http_error_response(status, reason, "bad_request");
}

void InputService::on_done(const HttpRequest& /*request*/, int /*status*/, double /*seconds*/, uint64_t /*bytes*/) {}

}  // namespace transept

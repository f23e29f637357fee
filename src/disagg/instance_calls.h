// The HTTP calls between instances: an encode instance fetches the input of a ticket from who has asked for it, and
// says so if it cannot encode it. Of a prompt that it has read itself it also says when the rows are there. With a
// secret each call has a code in a header; without one, instances are believed that call from the same machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "core/encoder_item.h"
#include "disagg/injected_input.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/ec_secret.h"
#include "net/http.h"
#include "net/http_client.h"

namespace transept {

inline constexpr std::string_view kInputsPath = "/v1/inputs/";  // {request_id}/{input_id}
inline constexpr std::string_view kInstanceCodeHeader = "X-Transept-Instance-Code";

// The header's value: 32 hexadecimal digits. `target`: the path, with its query if there is one. Thread-safe.
std::string instance_code(const EcSecret& secret, std::string_view method, std::string_view target,
                          std::string_view body);
// Whether an instance of the fleet has sent the request. `secret` may be null. Thread-safe.
bool is_from_instance(const EcSecret* secret, const HttpRequest& request);

// The input of /v1/inputs/{request_id}/{input_id}; nullopt: the path names none.
std::optional<EcInput> parse_inputs_path(std::string_view path);
std::string inputs_path(const EcInput& input);

// Why an input is refused, as the body of POST /v1/inputs/..: {"error": {"status": "INVALID_ARGUMENT", "message": ..}}.
std::string refusal_body(const Status& why);
// Errors: kInvalidArgument, the body is no refusal.
Status parse_refusal(std::string_view body, Status& why);

// Whether a ticket is of a prompt, which the encode instance makes into an input: its digest is zero, and its positions
// are a guess. Else it is of an input, whose digest and positions it has.
inline bool is_of_prompt(const Ticket& ticket) { return ticket.digest == ContentDigest(); }

// The request's id and traceparent, for the logs of instances that work for it.
TraceContext trace_of(const HttpRequest& request);

// What an encode instance says of a ticket, as the body of POST /v1/inputs/..: a refusal, or {"encoded": {..}} as
// injected_input.h has it.
std::string injection_body(const InjectedInput& injected);
using TicketReport = std::variant<Status, InjectedInput>;  // the status is not ok
// Errors: kInvalidArgument, by the field's name.
StatusOr<TicketReport> parse_report(std::string_view body);

// Keeps its last connection. Not thread-safe; waits for the network, `Options::timeout` at most.
class InstanceClient final {
 public:
  struct Options {
    std::shared_ptr<const EcSecret> secret;  // may be null
    size_t max_input_bytes = size_t{256} << 20;
    std::chrono::milliseconds timeout{3000};
  };
  explicit InstanceClient(Options options) : options_(std::move(options)) {}

  // Of the instance that it has called last, to which it may be connected. "": none.
  const std::string& url() const { return url_; }

  // What a ticket asks for: an input, which is what its digest says; or of is_of_prompt() a text, as the body of
  // POST /v1/encode with one prompt. Errors: kNotFound, it is asked for no longer; kInvalidArgument or
  // kFailedPrecondition, it is not what the ticket says, or no input; kPermissionDenied, the secrets differ;
  // kResourceExhausted, it is larger than max_input_bytes; kUnavailable, kDeadlineExceeded.
  using Fetched = std::variant<EncoderItem, std::string>;
  StatusOr<Fetched> fetch(const Ticket& ticket);
  // Tells who has asked that the input will not be encoded. Errors: as fetch().
  Status refuse(const Ticket& ticket, const Status& why);
  // Tells who has asked that the rows are at the consumer. REQUIRES: is_of_prompt(ticket). Errors: as fetch().
  Status report(const Ticket& ticket, const InjectedInput& injected);

 private:
  Status tell(const Ticket& ticket, std::string_view body);
  StatusOr<HttpClient::Reply> call(const Ticket& ticket, std::string_view method, std::string_view body);
  Status connect(const std::string& url);

  const Options options_;
  std::string url_;  // that the client is of
  std::string prefix_;
  std::optional<HttpClient> client_;
};

}  // namespace transept

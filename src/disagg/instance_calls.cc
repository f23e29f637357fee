#include "disagg/instance_calls.h"

#include <charconv>
#include <vector>

#include "base/hex.h"
#include "base/json.h"
#include "disagg/input_codec.h"
#include "net/access_log.h"

namespace transept {
namespace {

constexpr size_t kMaxWhyBytes = 4096;
constexpr std::string_view kPromptContentType = "application/json";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

EcMac code_of(const EcSecret& secret, std::string_view method, std::string_view target, std::string_view body) {
  // No frame begins so, and no method or target has a line end.
  return secret.mac({bytes_of("transept call\n"), bytes_of(method), bytes_of("\n"), bytes_of(target), bytes_of("\n"),
                     bytes_of(body)});
}

constexpr absl::StatusCode kCodes[] = {
    absl::StatusCode::kCancelled,          absl::StatusCode::kInvalidArgument, absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kNotFound,           absl::StatusCode::kAlreadyExists,   absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kFailedPrecondition, absl::StatusCode::kUnimplemented,   absl::StatusCode::kInternal,
    absl::StatusCode::kUnavailable,
};

// What another instance answers when it does not answer with an input.
Status error_of(const HttpClient::Reply& reply, const std::string& url) {
  const std::string what = str_cat(url, ": HTTP ", reply.status);
  if (reply.status == 404) return not_found(what, ": the input is asked for no longer");
  if (reply.status == 401) {
    return absl::PermissionDeniedError(str_cat(what, ": --ec-secret-file differs, or one side has none"));
  }
  if (reply.status == 403) {
    return absl::PermissionDeniedError(str_cat(what, ": --allowed-host there does not have this name"));
  }
  return absl::UnavailableError(what);
}

}  // namespace

std::string instance_code(const EcSecret& secret, std::string_view method, std::string_view target,
                          std::string_view body) {
  return hex_text(code_of(secret, method, target, body));
}

bool is_from_instance(const EcSecret* secret, const HttpRequest& request) {
  if (secret == nullptr) return request.peer_is_loopback;
  const std::string* given = request.header(kInstanceCodeHeader);
  if (given == nullptr) return false;
  const std::string target = request.query.empty() ? request.path : str_cat(request.path, "?", request.query);
  const std::string right = instance_code(*secret, request.method, target, request.body);
  return given->size() == right.size() && equal_in_constant_time(bytes_of(*given), bytes_of(right));
}

std::optional<EcInput> parse_inputs_path(std::string_view path) {
  if (!path.starts_with(kInputsPath)) return std::nullopt;
  path.remove_prefix(kInputsPath.size());
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  EcInput input{std::string(path.substr(0, slash)), 0};
  const std::string_view number = path.substr(slash + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), input.input_id);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (!check_ec_name("request_id", input.request_id).ok()) return std::nullopt;
  return input;
}

std::string inputs_path(const EcInput& input) { return str_cat(kInputsPath, input.request_id, "/", input.input_id); }

TraceContext trace_of(const HttpRequest& request) {
  std::string_view parent = traceparent_of(request);
  if (parent.size() > TraceContext::kMaxBytes) parent = {};
  TraceContext trace{request.request_id, std::string(parent)};
  // A traceparent of a later version may hold what does not travel.
  if (!check_trace(trace).ok()) trace.traceparent.clear();
  return trace;
}

std::string refusal_body(const Status& why) {
  Json error = Json::object();
  error.set("status", absl::StatusCodeToString(why.code()));
  error.set("message", error_message(why).substr(0, kMaxWhyBytes));
  Json body = Json::object();
  body.set("error", std::move(error));
  return body.dump();
}

namespace {

Status read_refusal(const Json& json, Status& why) {
  const Json* error = json.is_object() ? json.find("error") : nullptr;
  if (error == nullptr || !error->is_object()) return field_error("error", "expected an object");
  const Json* status = error->find("status");
  const Json* message = error->find("message");
  if (status == nullptr || !status->is_string()) return field_error("error.status", "expected a text");
  if (message == nullptr || !message->is_string()) return field_error("error.message", "expected a text");
  for (const absl::StatusCode code : kCodes) {
    if (absl::StatusCodeToString(code) != status->as_string()) continue;
    why = Status(code, message->as_string().substr(0, kMaxWhyBytes));
    return ok_status();
  }
  return field_error("error.status", "no status of that name");
}

StatusOr<Json> parse_told(std::string_view body) {
  return Json::parse(body, {.max_bytes = 4 * kMaxWhyBytes, .max_depth = 4});
}

}  // namespace

Status parse_refusal(std::string_view body, Status& why) {
  ASSIGN_OR_RETURN(const Json json, parse_told(body));
  return read_refusal(json, why);
}

std::string injection_body(const InjectedInput& injected) {
  Json body = Json::object();
  body.set("encoded", injected_json(injected));
  return body.dump();
}

StatusOr<TicketReport> parse_report(std::string_view body) {
  ASSIGN_OR_RETURN(const Json json, parse_told(body));
  if (const Json* encoded = json.find("encoded"); encoded != nullptr) {
    ASSIGN_OR_RETURN(InjectedInput injected, read_injected(*encoded, "encoded"));
    return TicketReport(std::move(injected));
  }
  Status why;
  RETURN_IF_ERROR(read_refusal(json, why));
  return TicketReport(std::move(why));
}

// ---- The client

Status InstanceClient::connect(const std::string& url) {
  if (client_.has_value() && url_ == url) return ok_status();
  client_.reset();
  ASSIGN_OR_RETURN(HttpUrl parsed, HttpUrl::parse(url));
  while (parsed.path.ends_with('/')) parsed.path.pop_back();
  prefix_ = std::move(parsed.path);
  url_ = url;
  constexpr size_t kOtherFields = size_t{64} << 10;
  client_.emplace(std::move(parsed.host), parsed.port,
                  HttpClient::Options{.connect_timeout = options_.timeout,
                                      .timeout = options_.timeout,
                                      .max_body_bytes = options_.max_input_bytes + kOtherFields});
  return ok_status();
}

StatusOr<HttpClient::Reply> InstanceClient::call(const Ticket& ticket, std::string_view method, std::string_view body) {
  RETURN_IF_ERROR(connect(ticket.asker_url));
  const std::string path = prefix_ + inputs_path(input_of(ticket.key));
  HttpHeaders headers;
  if (options_.secret != nullptr) {
    headers.emplace_back(kInstanceCodeHeader, instance_code(*options_.secret, method, path, body));
  }
  // Its log has the line of the client's request and this one under one id.
  if (!ticket.trace.request_id.empty()) headers.emplace_back("X-Request-Id", ticket.trace.request_id);
  if (!ticket.trace.traceparent.empty()) headers.emplace_back("traceparent", ticket.trace.traceparent);
  if (method == "GET") return client_->get(path, headers);
  return client_->post(path, "application/json", body, headers);
}

StatusOr<InstanceClient::Fetched> InstanceClient::fetch(const Ticket& ticket) {
  if (ticket.num_bytes > options_.max_input_bytes) {
    return resource_exhausted("an input of ", ticket.num_bytes, " bytes: at most ", options_.max_input_bytes,
                              " are taken");
  }
  ASSIGN_OR_RETURN(HttpClient::Reply reply, call(ticket, "GET", {}));
  if (reply.status != 200) return error_of(reply, ticket.asker_url);
  const std::string_view expected = is_of_prompt(ticket) ? kPromptContentType : kFeaturesContentType;
  const std::string* type = find_header(reply.headers, "Content-Type");
  if (type == nullptr || *type != expected) {
    return absl::FailedPreconditionError(str_cat(ticket.asker_url, ": the answer is not ", expected));
  }
  if (is_of_prompt(ticket)) return Fetched(std::move(reply.body));
  ASSIGN_OR_RETURN(EncoderItem item, decode_input(bytes_of(reply.body)));
  item.digest = item_digest(item);
  if (*item.digest != ticket.digest || item.num_positions() != ticket.num_positions) {
    return absl::FailedPreconditionError(str_cat(ticket.asker_url, ": the input is not what its ticket says"));
  }
  return Fetched(std::move(item));
}

Status InstanceClient::refuse(const Ticket& ticket, const Status& why) { return tell(ticket, refusal_body(why)); }

Status InstanceClient::report(const Ticket& ticket, const InjectedInput& injected) {
  return tell(ticket, injection_body(injected));
}

Status InstanceClient::tell(const Ticket& ticket, std::string_view body) {
  ASSIGN_OR_RETURN(const HttpClient::Reply reply, call(ticket, "POST", body));
  return reply.status == 200 ? ok_status() : error_of(reply, ticket.asker_url);
}

}  // namespace transept

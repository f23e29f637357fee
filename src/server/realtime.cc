#include "server/realtime.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/quoted.h"
#include "net/websocket_handshake.h"
#include "request/field_reader.h"
#include "server/cache_salt.h"
#include "server/realtime_hub.h"
#include "server/realtime_openai.h"
#include "server/realtime_socket.h"
#include "server/replies.h"

namespace transept {
namespace {

constexpr std::string_view kSubprotocols[] = {"realtime"};
constexpr std::string_view kBetaSubprotocol = "openai-beta.realtime-v1";

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

Status check_served(const ServerContext& context) {
  if (context.realtime != nullptr) return ok_status();
  return field_error("model", "this model is not for live audio: it does not transcribe");
}

RealtimeServed served_of(const ServerContext& context) {
  return {.models = context.options.served_model_names, .max_text_bytes = context.options.max_field_bytes};
}

const RealtimeDialect& dialect_of(const HttpRequest& request) {
  const std::string* beta = request.header("OpenAI-Beta");
  if (beta != nullptr && trim(*beta) == "realtime=v1") return beta_dialect();
  const std::vector<std::string_view> offered = offered_subprotocols(request);
  return std::ranges::find(offered, kBetaSubprotocol) != offered.end() ? beta_dialect() : openai_dialect();
}

// As a session.update, so that both are read alike.
RealtimeFailure read_session(const ServerContext& context, const Json& session, RealtimeConfig& config) {
  RealtimeMessage message;
  message.json = Json(Json::Object{{"session", session}});
  const RealtimeDialect& dialect = openai_dialect();
  if (RealtimeFailure error = dialect.read_update(message, served_of(context), config)) return error;
  if (config.model.empty()) config.model = context.options.served_model_names.front();
  const Status status = context.realtime->speech().check(config.live_options());
  if (status.ok()) return std::nullopt;
  RealtimeError error = realtime_error(status);
  error.param = dialect.path_of(error.param);
  return error;
}

// What the key of the request says that the session is to be, if it is a client secret.
void read_secret(const ServerContext& context, const HttpRequest& request, RealtimeConfig& config) {
  const std::optional<std::string> payload = context.client_secrets.payload_of(api_key_of(request), unix_seconds());
  if (!payload.has_value() || payload->empty()) return;
  const StatusOr<Json> session = Json::parse(*payload);
  RealtimeConfig wanted = config;
  // It was checked when the key was made.
  if (session.ok() && !read_session(context, *session, wanted).has_value()) config = std::move(wanted);
}

StatusOr<int64_t> read_lifetime(const Json& body) {
  const Json* after = body.find("expires_after");
  if (after == nullptr || after->is_null()) return ClientSecrets::kDefaultSeconds;
  if (!after->is_object()) return field_error("expires_after", "expires_after: expected an object");
  const Json* anchor = after->find("anchor");
  if (anchor != nullptr && !anchor->is_null() && !(anchor->is_string() && anchor->as_string() == "created_at")) {
    return field_error("expires_after.anchor",
                       str_cat("expires_after.anchor: expected \"created_at\", got ", shown(*anchor)));
  }
  const Json* seconds = after->find("seconds");
  if (seconds == nullptr || seconds->is_null()) return ClientSecrets::kDefaultSeconds;
  const std::optional<int64_t> count = whole_number_of(*seconds);
  if (!count.has_value() || *count < ClientSecrets::kMinSeconds || *count > ClientSecrets::kMaxSeconds) {
    return field_error("expires_after.seconds",
                       str_cat("expires_after.seconds: expected a whole number from ", ClientSecrets::kMinSeconds,
                               " to ", ClientSecrets::kMaxSeconds, ", got ", shown(*seconds)));
  }
  return *count;
}

StatusOr<Json> make_secret(const ServerContext& context, const ApiCall& call) {
  RETURN_IF_ERROR(check_served(context));
  ASSIGN_OR_RETURN(const Json body, json_body(context, call.http));
  ASSIGN_OR_RETURN(const int64_t lifetime, read_lifetime(body));
  RealtimeView view;
  view.config.model = context.options.served_model_names.front();
  std::string payload;
  if (const Json* session = body.find("session"); session != nullptr && !session->is_null()) {
    if (const RealtimeFailure error = read_session(context, *session, view.config)) {
      return error->code == "unsupported" ? with_param(unimplemented(error->message), error->param)
                                          : field_error(error->param, error->message);
    }
    payload = session->dump();
    if (payload.size() > ClientSecrets::kMaxPayloadBytes) {
      return field_error("session", str_cat("session: ", payload.size(), " bytes; a key holds at most ",
                                            ClientSecrets::kMaxPayloadBytes));
    }
  }
  view.id = RealtimeIds().session();
  view.expires_at = unix_seconds() + lifetime;
  return Json(Json::Object{{"value", context.client_secrets.make(view.expires_at, payload)},
                           {"expires_at", view.expires_at},
                           {"session", session_json(view)}});
}

}  // namespace

StatusOr<WebSocketUpgrade> open_realtime(const ServerContext& context, const HttpRequest& request) {
  RETURN_IF_ERROR(check_served(context));
  const std::optional<std::string> intent = query_parameter(request.query, "intent");
  if (intent.has_value() && *intent != "transcription") {
    return field_error("intent", str_cat("intent ", in_quotes(*intent), ": \"transcription\" is served alone"));
  }
  if (query_parameter(request.query, "call_id").has_value()) {
    return field_error("call_id", "call_id: there are no calls here");
  }
  std::optional<std::string> subprotocol = choose_subprotocol(request, kSubprotocols);
  if (!subprotocol.has_value()) {
    return field_error("Sec-WebSocket-Protocol", "of subprotocols \"realtime\" is served alone");
  }
  RealtimeSocketOptions options;
  read_secret(context, request, options.config);
  const std::optional<std::string> model = query_parameter(request.query, "model");
  if (model.has_value() || options.config.model.empty()) {
    ASSIGN_OR_RETURN(options.config.model, model_name(context, model));
  }
  options.dialect = &dialect_of(request);
  options.served = served_of(context);
  ASSIGN_OR_RETURN(options.cache_salt, cache_salt_of(context, request, std::nullopt));
  options.json = {.max_bytes = kMaxRealtimeMessageBytes, .max_depth = context.options.json.max_depth};
  options.request_id = request.request_id;
  options.long_workers = &context.long_workers;
  StatusOr<RealtimeHub::Place> place = context.realtime->take_place();
  if (!place.ok()) context.metrics.count_refused("live");
  RETURN_IF_ERROR(place.status());
  return WebSocketUpgrade{
      .subprotocol = *std::move(subprotocol),
      .max_message_bytes = kMaxRealtimeMessageBytes,
      .handler = make_realtime_socket(*context.realtime, std::move(place).value(), std::move(options))};
}

void handle_client_secret(const ServerContext& context, const ApiCallPtr& call) {
  const StatusOr<Json> secret = make_secret(context, *call);
  if (!secret.ok()) return reply_error(context, *call, secret.status());
  reply(*call, *secret);
}

}  // namespace transept

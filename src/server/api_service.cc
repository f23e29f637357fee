#include "server/api_service.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

#include "base/ascii.h"
#include "net/ending_responder.h"
#include "net/forwarding_responder.h"
#include "net/http_chars.h"
#include "server/page.h"
#include "server/replies.h"
#include "server/routes.h"

namespace transept {
namespace {

// Longer ones are parsed and tokenised on some of the workers alone.
constexpr size_t kLongBodyBytes = 64 << 10;
constexpr size_t kMaxPeerBodyBytes = 64 << 10;

// "Name:8000" -> "name", "[::1]:8000" -> "[::1]".
std::string host_name(std::string_view host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  std::string name = ascii_lower(has_port ? host.substr(0, colon) : host);
  if (name.ends_with('.')) name.pop_back();
  return name;
}

// RFC 9110, 8.4: nothing is decoded here, so a body must come as it is.
bool has_content_encoding(const HttpRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& header) {
    return equals_ignoring_case(header.first, "Content-Encoding") && !trim(header.second).empty() &&
           !equals_ignoring_case(trim(header.second), "identity");
  });
}

// All of both is looked at, however early they differ: the time taken tells nothing of the key.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  size_t difference = a.size() ^ b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? '\0' : b[i % b.size()]);
  }
  return difference == 0;
}

bool is_one_of(std::string_view given, const std::vector<std::string>& keys) {
  bool found = false;
  for (const std::string& key : keys) found |= equal_in_constant_time(given, key);
  return found;
}

// Adds what every answer to a request has, be it an error or a stream.
class HeaderedResponder final : public ForwardingResponder {
 public:
  HeaderedResponder(std::shared_ptr<Responder> to, HttpHeaders headers)
      : ForwardingResponder(std::move(to)), headers_(std::move(headers)) {}

  void respond(HttpResponse response) override { ForwardingResponder::respond(with_headers(std::move(response))); }
  void start_stream(HttpResponse head) override { ForwardingResponder::start_stream(with_headers(std::move(head))); }

 private:
  HttpResponse with_headers(HttpResponse response) const {
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    return response;
  }

  const HttpHeaders headers_;
};

// Whatever waits, and whether the server drains.
bool is_answered_at_once(const Route& route) {
  return route.kind == RouteKind::kPeer || route.kind == RouteKind::kAdmin;
}

// A form has more than its file in it: another field of the largest size, and what is between them.
size_t max_form_bytes(const ServerOptions& options) {
  constexpr size_t kAtLeast = size_t{1} << 20, kBetween = size_t{64} << 10;
  const auto plus = [](size_t a, size_t b) { return a + std::min(b, std::numeric_limits<size_t>::max() - a); };
  return plus(options.max_upload_bytes, std::max(kAtLeast, plus(options.max_field_bytes, kBetween)));
}

// What the head announces; of a body in chunks, as much as it may be.
int64_t body_size(const HttpRequest& request, size_t max_body_bytes) {
  const std::string* length = request.header("Content-Length");
  size_t size = max_body_bytes;
  if (length != nullptr) std::from_chars(length->data(), length->data() + length->size(), size);
  return static_cast<int64_t>(std::min(size, max_body_bytes));
}

// Statuses that net/ gives itself, as OpenAI's "code".
std::string_view code_of(int status) {
  switch (status) {
    case 405: return "method_not_allowed";
    case 408: return "request_timeout";
    case 413: return "request_too_large";
    case 414: return "uri_too_long";
    case 417: return "expectation_failed";
    case 426: return "upgrade_required";
    case 431: return "headers_too_large";
    case 500: return "internal_error";
    case 501: return "not_implemented";
    case 503: return "unavailable";
    case 505: return "http_version_not_supported";
    default: return "bad_request";
  }
}

}  // namespace

struct ApiService::Ticket {
  const Route* route = nullptr;
  HttpHeaders headers;  // that every answer has
  Admission::Charge body;
  std::unique_ptr<IncomingRequests::Place> arriving;  // while the body is on its way
};

// ---- Who may come in

const Route* ApiService::route_of(const HttpRequest& request) const {
  return find_route(request.method, request.path, more_routes_);
}

bool ApiService::is_allowed_host(const HttpRequest& request) const {
  const std::string* host = request.header("Host");
  if (host == nullptr) return true;  // HTTP/1.0
  const std::string name = host_name(*host);
  static constexpr std::string_view kOwn[] = {"localhost", "127.0.0.1", "[::1]"};
  if (std::ranges::find(kOwn, name) != std::end(kOwn)) return true;
  // Another address of loopback (127.0.0.2), which is what the banner shows then.
  if (options_.listens_on_loopback && name == host_name(options_.http.host)) return true;
  return std::ranges::any_of(options_.allowed_hosts,
                             [&](const std::string& allowed) { return allowed == "*" || host_name(allowed) == name; });
}

// A page's own origin, whatever proxy it came through, and those that were allowed.
bool ApiService::is_allowed_origin(const HttpRequest& request) const {
  const std::string* origin = request.header("Origin");
  if (origin == nullptr) return true;
  const std::string* host = request.header("Host");
  if (host != nullptr && (*origin == "http://" + *host || *origin == "https://" + *host)) return true;
  return std::ranges::any_of(options_.cors_origins,
                             [&](const std::string& allowed) { return allowed == "*" || allowed == *origin; });
}

std::optional<HttpResponse> ApiService::refuse_key(const HttpRequest& request) const {
  const Route* route = route_of(request);
  const bool is_socket = route != nullptr && route->kind == RouteKind::kSocket;
  const std::string_view key = is_socket ? api_key_of(request) : bearer_of(request);
  const bool is_admin = is_one_of(key, options_.admin_keys);
  if (route != nullptr && route->kind == RouteKind::kAdmin) {
    if (is_admin) return std::nullopt;
    if (options_.admin_keys.empty()) {
      return http_error_response(403, "this path is for an admin key, which --admin-api-key gives", "no_admin_key");
    }
  } else if (!needs_key(request) || is_admin || is_one_of(key, options_.api_keys) ||
             (is_socket && is_client_secret(key))) {
    return std::nullopt;
  }
  HttpResponse response =
      http_error_response(401, "an API key is needed: Authorization: Bearer KEY", "invalid_api_key");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

bool ApiService::is_client_secret(std::string_view key) const {
  const ServerContext* context = context_.load();
  if (context == nullptr) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return context->client_secrets.payload_of(key, std::chrono::duration_cast<std::chrono::seconds>(now).count())
      .has_value();
}

bool ApiService::needs_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return false;
  if (find_page_file(request.path) != nullptr && route_of(request) == nullptr) return false;
  const Route* route = route_of(request);
  if (route == nullptr) return true;
  return !route->is_public && !(route->is_local_public && request.peer_is_loopback);
}

std::optional<HttpResponse> ApiService::refuse(const HttpRequest& request) const {
  const bool checks_host = options_.listens_on_loopback || !options_.allowed_hosts.empty();
  if (checks_host && !is_allowed_host(request)) {
    return http_error_response(403, "this Host is not allowed; --allowed-host allows it", "host_not_allowed");
  }
  if (!is_allowed_origin(request)) {
    return http_error_response(403, "pages of this Origin are not allowed; --cors-origin allows them",
                               "origin_not_allowed");
  }
  if (request.method == "OPTIONS") return preflight(request);
  if (std::optional<HttpResponse> refusal = refuse_key(request); refusal.has_value()) return refusal;
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (is_get && find_page_file(request.path) != nullptr) return std::nullopt;
  if (const Route* route = route_of(request); route != nullptr) {
    if (!is_served(*route, options_.role)) {
      return http_error_response(404, "instances of another --role have this path", "not_found");
    }
    if (route->kind == RouteKind::kInfo || !has_content_encoding(request)) return std::nullopt;
    return http_error_response(415, "no Content-Encoding but identity is understood: send the body as it is",
                               "unsupported_content_encoding");
  }
  const std::string methods =
      is_get || find_page_file(request.path) == nullptr ? allowed_methods(request.path, more_routes_) : "GET, HEAD";
  if (methods.empty()) return http_error_response(404, "there is no such path", "not_found");
  HttpResponse response = http_error_response(405, str_cat("this path takes ", methods), "method_not_allowed");
  response.headers.emplace_back("Allow", methods);
  return response;
}

HttpResponse ApiService::preflight(const HttpRequest& request) const {
  HttpResponse response{.status = 204, .content_type = ""};
  std::string methods = allowed_methods(request.path, more_routes_);
  if (methods.empty() && find_page_file(request.path) != nullptr) methods = "GET, HEAD";
  if (methods.empty()) return http_error_response(404, "there is no such path", "not_found");
  methods += ", OPTIONS";
  response.headers.emplace_back("Allow", methods);
  if (request.header("Origin") == nullptr) return response;
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  // Any header: OpenAI's client in a browser sends a dozen of its own (X-Stainless-..). "*" leaves Authorization out.
  response.headers.emplace_back("Access-Control-Allow-Headers", "*, Authorization");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

void ApiService::add_headers(const HttpRequest& request, HttpResponse& response) const {
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  const std::string* origin = request.header("Origin");
  if (origin == nullptr || options_.cors_origins.empty() || !is_allowed_origin(request)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", *origin);
  response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  response.headers.emplace_back("Vary", "Origin");
}

HttpResponse ApiService::refusal_of(const Status& status, std::string_view why) const {
  metrics_.count_refused(why);
  return error_response(status, context_.load()->admission);
}

// Nothing of the body has been read: a client that must wait too long is told at once. No place is taken yet: that is
// for whole requests.
std::optional<HttpResponse> ApiService::admit(const HttpRequest& request, const Route& route,
                                              size_t max_body_bytes) const {
  const ServerContext* context = context_.load();
  const ServerState state = state_.load();
  // What instances ask of each other is for requests that are admitted already.
  if (context != nullptr && is_answered_at_once(route)) return std::nullopt;
  if (context == nullptr || state != ServerState::kReady) {
    const bool is_draining = state == ServerState::kDraining;
    metrics_.count_refused(is_draining ? "draining" : "loading");
    HttpResponse response =
        http_error_response(503, is_draining ? "the server is shutting down" : "the model is loading",
                            is_draining ? "draining" : "loading");
    response.headers.emplace_back("Retry-After", "5");
    return response;
  }
  if (const Status places = context->admission.check_places(); !places.ok()) return refusal_of(places, "queue");
  const Status room = context->admission.check_body(body_size(request, max_body_bytes));
  if (!room.ok()) return refusal_of(room, "budget");
  return std::nullopt;
}

HttpService::Decision ApiService::open_socket(const HttpRequest& request, const Route& route) const {
  Decision decision;
  decision.refusal = admit(request, route, 0);
  if (decision.refusal.has_value()) return decision;
  const ServerContext& context = *context_.load();
  StatusOr<WebSocketUpgrade> upgrade = route.upgrade(context, request);
  if (upgrade.ok()) {
    decision.upgrade = std::move(upgrade).value();
  } else {
    decision.refusal = error_response(upgrade.status(), context.admission);
  }
  return decision;
}

HttpService::Decision ApiService::on_head(const HttpRequest& request) {
  Decision decision;
  decision.refusal = refuse(request);
  const Route* route = route_of(request);
  if (!decision.refusal.has_value() && route != nullptr && route->kind == RouteKind::kSocket) {
    decision = open_socket(request, *route);
  } else if (!decision.refusal.has_value() && route != nullptr && route->kind != RouteKind::kInfo) {
    decision.max_body_bytes = route->kind == RouteKind::kSpeech ? max_form_bytes(options_)
                              : is_answered_at_once(*route)     ? kMaxPeerBodyBytes
                                                                : options_.json.max_bytes;
    decision.refusal = admit(request, *route, decision.max_body_bytes);
    if (!decision.refusal.has_value()) {
      auto ticket = std::make_shared<Ticket>();
      ticket->route = route;
      HttpResponse extra;
      add_headers(request, extra);
      ticket->headers = std::move(extra.headers);
      decision.ticket = std::move(ticket);
    }
  }
  if (decision.refusal.has_value()) add_headers(request, *decision.refusal);
  return decision;
}

// ---- While the body comes

std::optional<HttpResponse> ApiService::on_body_awaited(const HttpRequest& request, const std::shared_ptr<void>& ticket,
                                                        const std::shared_ptr<IncomingBody>& body) {
  if (ticket == nullptr) return std::nullopt;  // its body is passed over
  auto& taken = *static_cast<Ticket*>(ticket.get());
  taken.arriving = context_.load()->incoming.enter(request.peer, body, taken.headers);
  if (taken.arriving != nullptr) return std::nullopt;
  HttpResponse response =
      refusal_of(absl::ResourceExhaustedError("too many requests are on their way; try again later"), "arriving");
  add_headers(request, response);
  return response;
}

// Whoever announces much and sends little is charged little.
std::optional<HttpResponse> ApiService::on_body_bytes(const std::shared_ptr<void>& ticket, size_t num_bytes) {
  if (ticket == nullptr) return std::nullopt;
  auto& taken = *static_cast<Ticket*>(ticket.get());
  const ServerContext& context = *context_.load();
  if (taken.arriving != nullptr) taken.arriving->note(num_bytes);
  const auto bytes = static_cast<int64_t>(num_bytes);
  const Status charged = context.admission.charge_body(taken.body, bytes);
  if (charged.ok()) return std::nullopt;
  if (context.incoming.dismiss_slowest()) {  // what it held is free in a moment
    (void)context.admission.charge_body(taken.body, bytes, true);
    return std::nullopt;
  }
  HttpResponse response = refusal_of(charged, "budget");
  response.headers.insert(response.headers.end(), taken.headers.begin(), taken.headers.end());
  return response;
}

// ---- Who answers

// Of a decode instance, to which several proxies may send: a responder that frees the id when the answer ends, so that
// a client that has it may use the id again. Null: a request of this id is in work, and this one is answered.
std::shared_ptr<Responder> ApiService::name(const HttpRequest& request, std::shared_ptr<Responder> responder) {
  const std::string* const id = request.header("X-Request-Id");
  const bool is_named = request.method == "POST" && id != nullptr && *id == request.request_id;
  if (!is_named || options_.role != InstanceRole::kDecode) return responder;
  if (ids_->begin(*id)) {
    return std::make_shared<EndingResponder>(std::move(responder), [ids = ids_, id = *id] { ids->end(id); });
  }
  const Status taken = with_param(
      absl::AlreadyExistsError(str_cat("a request with the X-Request-Id ", *id, " is in flight")), "X-Request-Id");
  responder->respond(error_response(taken, context_.load()->admission));
  return nullptr;
}

void ApiService::on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) {
  if (ticket == nullptr) {
    HttpResponse response = answer_info(request);
    add_headers(request, response);
    return responder->respond(std::move(response));
  }
  const ServerContext& context = *context_.load();
  auto& taken = *static_cast<Ticket*>(ticket.get());
  taken.arriving.reset();
  std::shared_ptr<Responder> answering =
      std::make_shared<HeaderedResponder>(std::move(responder), std::move(taken.headers));
  if (is_answered_at_once(*taken.route)) {
    return context.workers.post([&context, route = taken.route, request = std::move(request), answering] {
      answering->respond(route->info(context, request));
    });
  }
  answering = name(request, std::move(answering));
  if (answering == nullptr) return;
  StatusOr<Admission::Places> places = context.admission.take_places(1);
  if (!places.ok()) return answering->respond(refusal_of(places.status(), "queue"));
  auto call = std::make_shared<ApiCall>();
  call->http = std::move(request);
  call->responder = std::move(answering);
  call->places = std::move(places).value();
  call->body_charge = std::move(taken.body);
  // From its head on: what the body took is part of the wait.
  const std::chrono::duration<double> age(call->responder->seconds());
  call->arrival = context.clock.now() - std::chrono::duration_cast<Duration>(age);
  const RouteKind kind = taken.route->kind;
  WorkPool& pool = kind == RouteKind::kSpeech                ? context.transcribers
                   : call->http.body.size() > kLongBodyBytes ? context.long_workers
                                                             : context.workers;
  pool.post([&context, route = taken.route, call = std::move(call)] {
    if (!call->responder->is_gone()) route->work(context, call);
  });
}

HttpResponse ApiService::answer_info(const HttpRequest& request) const {
  if (const PageFile* file = find_page_file(request.path)) return page_response(*file, request);
  const Route* route = route_of(request);
  const ServerContext* context = context_.load();
  if (context != nullptr && route != nullptr) return route->info(*context, request);
  if (request.path == "/health/live") return {.body = R"({"status": "ok"})"};
  HttpResponse response = http_error_response(503, "the model is loading", "loading");
  response.headers.emplace_back("Retry-After", "5");
  return response;
}

HttpResponse ApiService::on_error(int status, const std::string& reason, const std::string& /*request_id*/) {
  return http_error_response(status, reason, code_of(status));
}

void ApiService::on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) {
  const Route* route = route_of(request);
  metrics_.count_http(route == nullptr ? "other" : route->pattern, request.method, status, seconds);
  // What asks every few seconds whether all is well would bury everything else.
  const bool is_probe = route != nullptr && route->kind != RouteKind::kPeer && status < 400 &&
                        (route->is_public || route->is_local_public);
  if (!is_probe) log_.log_done(request, status, seconds, bytes_sent);
}

}  // namespace transept

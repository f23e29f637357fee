#include "proxy/proxy_service.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "net/ending_responder.h"
#include "net/http_chars.h"
#include "proxy/proxy_responses.h"
#include "proxy/proxy_target.h"

namespace transept {
namespace {

constexpr size_t kMaxToldBytes = size_t{64} << 10;  // of what encode instances say
constexpr auto kUnsentLook = std::chrono::milliseconds(5);

HttpResponse health(std::string_view status, int code) {
  Json body = Json::object();
  body.set("status", status);
  return {.status = code, .body = body.dump()};
}

// Whether the client has chosen the request's id.
bool is_named(const HttpRequest& request) {
  const std::string* id = request.header("X-Request-Id");
  return request.method == "POST" && id != nullptr && *id == request.request_id;
}

bool is_of_inputs(const HttpRequest& request) {
  return request.path.starts_with(kInputsPath) && (request.method == "GET" || request.method == "POST");
}
bool is_between_instances(std::string_view path) { return path.starts_with(kInputsPath) || path == "/v1/encode"; }
HttpHeaders passed_on(const HttpHeaders& headers) {
  HttpHeaders passed;
  for (const auto& header : headers) {
    const std::string& name = header.first;
    const bool is_ours = equals_ignoring_case(name, "Content-Type") || equals_ignoring_case(name, "Date");
    if (!is_ours && !is_of_connection(name)) passed.push_back(header);
  }
  return passed;
}
Status nobody_ready(std::string_view last_words) {
  const std::string_view between = last_words.empty() ? "" : "; the last one said: ";
  return absl::UnavailableError(str_cat("no decode instance is ready", between, last_words));
}
bool is_of_one_instance(std::string_view path) { return path == "/debug/state"; }

}  // namespace

// A WebSocket's place, from the request on until it has ended; while it is open it is a request of its instance. The
// work on the request and then its tunnel own it.
class ProxyService::OpenWebSocket {
 public:
  explicit OpenWebSocket(ProxyService& service) : service_(service) { ++service_.num_websockets_; }
  ~OpenWebSocket() {
    if (of_.has_value()) service_.pool_.end(*of_, DecoderPool::Outcome::kAnswered, steady_now());
    --service_.num_websockets_;
  }
  OpenWebSocket(const OpenWebSocket&) = delete;
  OpenWebSocket& operator=(const OpenWebSocket&) = delete;

  // The instance has answered, and its request ends with this.
  void open(const InstanceId& of) {
    of_ = of;
    ++service_.num_opened_websockets_;
  }

 private:
  ProxyService& service_;
  std::optional<InstanceId> of_;
};

ProxyService::~ProxyService() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    threads = std::move(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

ProxyCounts ProxyService::counts() const {
  ProxyCounts counts{.num_answered = num_answered_,
                     .num_failed = num_failed_,
                     .num_given_up = num_given_up_,
                     .num_again = num_again_,
                     .num_forwarded = num_forwarded_,
                     .num_held = num_held_,
                     .num_let_go = num_let_go_,
                     .num_opened_websockets = num_opened_websockets_,
                     .num_body_bytes = static_cast<int64_t>(num_body_bytes_),
                     .num_websockets = num_websockets_};
  const MutexLock lock(mutex_);
  counts.num_in_work = num_in_work_;
  return counts;
}

void ProxyService::on_done(const HttpRequest& request, int status, double seconds, uint64_t bytes_sent) {
  // What asks every few seconds whether all is well would bury everything else.
  const bool is_probe = request.path.starts_with("/health") || request.path == "/metrics";
  if (!is_probe || status >= 400) log_.log_done(request, status, seconds, bytes_sent);
}

HttpService::Decision ProxyService::on_head(const HttpRequest& request) {
  Decision decision;
  decision.max_body_bytes = options_.max_body_bytes;
  if (held_ != nullptr && is_of_inputs(request)) {
    decision.max_body_bytes = kMaxToldBytes;
    return decision;
  }
  if (request.path == "/health/live") {
    decision.refusal = health("ok", 200);
  } else if (request.path == "/health" || request.path == "/health/ready") {
    const bool is_ready = !is_draining_ && pool_.num_ready(steady_now()) > 0;
    decision.refusal = is_ready ? health("ready", 200) : health(is_draining_ ? "draining" : "no instance", 503);
  } else if (request.path == "/metrics" && request.method == "GET") {
    decision.refusal = HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                    .body = proxy_metrics_text(counts(), pool_.states(steady_now()))};
  } else if (is_between_instances(request.path)) {
    decision.refusal = proxy_error(not_found("there is no such path"));
  } else if (is_of_one_instance(request.path) && !request.peer_is_loopback) {
    decision.refusal = proxy_error(absl::PermissionDeniedError("this path answers this machine alone"));
  } else if (is_draining_) {
    decision.refusal = proxy_error(absl::UnavailableError("the proxy is shutting down"));
  } else {
    decision.may_tunnel = is_websocket(request);
    decision.ticket = std::make_shared<Body>(num_body_bytes_);
  }
  return decision;
}

std::optional<HttpResponse> ProxyService::on_body_bytes(const std::shared_ptr<void>& ticket, size_t num_bytes) {
  if (ticket == nullptr) return std::nullopt;
  auto& body = *static_cast<Body*>(ticket.get());
  body.resize(num_bytes);
  if (num_body_bytes_ <= options_.max_bodies_bytes) return std::nullopt;
  return proxy_error(resource_exhausted("the bodies of all requests have more than ", options_.max_bodies_bytes,
                                        " bytes; try again later"));
}

void ProxyService::on_request(HttpRequest request, std::shared_ptr<void> ticket, std::shared_ptr<Responder> responder) {
  if (HeldInputs* const held = held_; held != nullptr && is_of_inputs(request)) {
    return responder->respond(held->answer(request));
  }
  const MutexLock lock(mutex_);
  if (std::optional<HttpResponse> refusal = refuse_now(request)) {
    ++num_failed_;
    return responder->respond(*std::move(refusal));
  }
  ++num_in_work_;
  if (is_websocket(request)) ticket = std::make_shared<OpenWebSocket>(*this);
  if (is_named(request)) responder = name(request.request_id, std::move(responder));
  waiting_.push_back({std::move(request), std::move(ticket), std::move(responder)});
  changed_.notify_one();
}

// Otherwise a thread will have it.
std::optional<HttpResponse> ProxyService::refuse_now(const HttpRequest& request) {
  if (is_named(request) && named_.contains(request.request_id)) {
    return proxy_error(with_param(
        absl::AlreadyExistsError(str_cat("a request with the X-Request-Id ", request.request_id, " is in flight")),
        "X-Request-Id"));
  }
  if (num_in_work_ >= options_.max_requests) {
    return proxy_error(
        resource_exhausted(num_in_work_, " requests are in work; at most ", options_.max_requests, " may be"));
  }
  if (is_websocket(request) && num_websockets_ >= options_.max_websockets) {
    return proxy_error(absl::UnavailableError(
        str_cat(num_websockets_.load(), " WebSockets are open; at most ", options_.max_websockets, " may be")));
  }
  if (num_idle_ <= static_cast<int32_t>(waiting_.size()) && !is_stopped_) add_thread();
  if (threads_.empty()) return proxy_error(absl::UnavailableError("the system gives no thread"));
  return std::nullopt;
}

// A client that has its answer may use the id again, so it is free before the answer ends.
std::shared_ptr<Responder> ProxyService::name(const std::string& id, std::shared_ptr<Responder> responder) {
  named_.insert(id);
  return std::make_shared<EndingResponder>(std::move(responder), [this, id] {
    const MutexLock lock(mutex_);
    named_.erase(id);
  });
}

HttpResponse ProxyService::on_error(int status, const std::string& reason, const std::string& /*request_id*/) {
  HttpResponse response = proxy_error(invalid_argument(reason));
  response.status = status;
  return response;
}

// ---- Threads

// If the system gives none, requests wait for the threads that there are.
void ProxyService::add_thread() {
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) log_error("the system gives no thread");
  }
}

void ProxyService::run() {
  while (true) {
    Work work;
    {
      const MutexLock lock(mutex_);
      ++num_idle_;
      while (waiting_.empty() && !is_stopped_) changed_.wait(mutex_);
      --num_idle_;
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    forward(work);
    work = {};
    const MutexLock lock(mutex_);
    --num_in_work_;
  }
}

// What has come of an answer, and where it goes.
struct ProxyService::Passing {
  Responder& responder;
  size_t max_unsent_bytes = 0;
  bool may_try_again = false;  // another instance is there
  HttpResponse response;
  bool has_head = false;
  bool is_stream = false;                      // it is passed on in pieces
  bool is_refusal = false;                     // 503, and another instance may answer
  std::string refusal;                         // what the instance said with it
  bool is_held = false;                        // it is sent with encoded_inputs
  bool is_doubted = false;                     // which the instance does not believe
  std::function<void(Tunnel)> open_websocket;  // of a WebSocket alone
  std::function<void()> on_answer;             // an answer that is no refusal has begun
  // Before the answer's end is sent, so that the client's next request finds what came of this one.
  std::function<void(DecoderPool::Outcome)> on_end;
  bool is_open = false;  // the instance has opened it

  HttpClient::Sink sink() {
    HttpClient::Sink sink = answer_sink();
    if (!open_websocket) return sink;
    sink.on_upgrade = [this](const HttpHeaders& headers, ClientSocket socket, std::string first_bytes) {
      has_head = is_open = true;
      on_answer();
      open_websocket(
          {.headers = passed_on(headers), .socket = std::move(socket), .first_bytes = std::move(first_bytes)});
    };
    return sink;
  }

  HttpClient::Sink answer_sink() {
    return {.on_head = [this](int status, const HttpHeaders& headers) { return take_head(status, headers); },
            .on_piece = [this](std::string_view piece) { return take(piece); },
            .is_wanted = [this] { return !responder.is_gone(); }};
  }

  bool take_head(int status, const HttpHeaders& headers) {
    is_refusal = status == 503;
    if (is_refusal && may_try_again) return false;
    is_doubted = is_held && find_header(headers, kInstanceCodeHeader) != nullptr;
    if (is_doubted) return false;
    has_head = true;
    if (!is_refusal) on_answer();
    response = {.status = status, .content_type = "", .headers = passed_on(headers)};
    if (const std::string* type = find_header(headers, "Content-Type")) response.content_type = *type;
    is_stream = find_header(headers, "Transfer-Encoding") != nullptr;
    if (is_stream) responder.start_stream(std::exchange(response, {}));
    return !responder.is_gone();
  }

  bool take(std::string_view piece) {
    if (!is_stream) {
      response.body += piece;
      return !responder.is_gone();
    }
    while (responder.num_unsent_bytes() > max_unsent_bytes && !responder.is_gone()) {
      std::this_thread::sleep_for(kUnsentLook);
    }
    if (responder.is_gone()) return false;
    responder.write(std::string(piece));
    return true;
  }
};

void ProxyService::forward(const Work& work) {
  ++num_forwarded_;
  Responder& responder = *work.responder;
  std::vector<InstanceId> tried;
  Status why = nobody_ready({});
  std::vector<HeldPrompt> prompts = prompts_to_hold(work);
  for (int32_t i = 0; i < options_.max_tries && !responder.is_gone(); ++i) {
    const std::optional<DecoderPool::Choice> choice = pool_.begin(tried, steady_now());
    if (!choice.has_value()) {
      if (tried.empty()) why = nobody_ready(pool_.last_refusal());
      break;
    }
    if (i > 0) ++num_again_;
    tried.push_back(choice->id);
    Passing passing{.responder = responder, .max_unsent_bytes = options_.max_unsent_bytes};
    passing.on_answer = [&] { pool_.begin_answer(choice->id); };
    passing.on_end = [&, has_ended = false](DecoderPool::Outcome outcome) mutable {
      // One that has all the live sessions that it may have is well.
      const bool is_full = is_websocket(work.request) && outcome == DecoderPool::Outcome::kRefused;
      if (is_full) outcome = DecoderPool::Outcome::kGivenUp;
      if (!std::exchange(has_ended, true)) pool_.end(choice->id, outcome, steady_now(), passing.refusal);
    };
    if (is_websocket(work.request)) {
      passing.open_websocket = [&](Tunnel tunnel) {
        static_cast<OpenWebSocket*>(work.ticket.get())->open(choice->id);
        tunnel.max_silence = options_.max_silence;
        tunnel.max_half_open = options_.max_half_open;
        tunnel.ticket = work.ticket;
        responder.start_tunnel(std::move(tunnel));
      };
    }
    passing.may_try_again = i + 1 < options_.max_tries && pool_.num_ready(steady_now()) > tried.size();
    InjectedInputs injected;
    const int64_t room = num_positions(prompts);
    const Status held = hold(*choice, work, prompts, injected);
    const DecoderPool::Outcome outcome = held.ok()             ? pass(*choice, work.request, injected, passing)
                                         : responder.is_gone() ? DecoderPool::Outcome::kGivenUp
                                                               : DecoderPool::Outcome::kBroken;
    if (!injected.empty()) pool_.end_hold(choice->id, room);
    if (!passing.is_open) passing.on_end(outcome);
    if (outcome == DecoderPool::Outcome::kGivenUp) ++num_given_up_;
    if (passing.has_head && outcome != DecoderPool::Outcome::kGivenUp && outcome != DecoderPool::Outcome::kBroken) {
      ++num_answered_;
    }
    if (passing.has_head || outcome == DecoderPool::Outcome::kGivenUp) return;
    why = absl::UnavailableError(outcome == DecoderPool::Outcome::kRefused
                                     ? str_cat("the decode instance ", choice->id.name, " takes no requests now")
                                     : str_cat("the decode instance ", choice->id.name, " cannot be reached"));
  }
  if (responder.is_gone()) {
    ++num_given_up_;
    return;
  }
  ++num_failed_;
  responder.respond(proxy_error(why));
}

// A held request that the instance does not believe goes to it as it came.
DecoderPool::Outcome ProxyService::pass(const DecoderPool::Choice& choice, const HttpRequest& request,
                                        const InjectedInputs& injected, Passing& passing) {
  if (injected.empty()) return try_one(choice, request, request.body, {}, passing);
  passing.is_held = true;
  const std::string body = with_encoded_inputs(request.body, injected);
  HeldInputs* const inputs = held_;
  const DecoderPool::Outcome outcome =
      try_one(choice, request, body, inputs->proof(request.method, target_of("", request), body), passing);
  if (!passing.is_doubted) return outcome;
  doubt(choice.id.name);
  passing.is_held = passing.is_doubted = false;
  return try_one(choice, request, request.body, {}, passing);
}

// Sends the answer, if passing.has_head is set.
DecoderPool::Outcome ProxyService::try_one(const DecoderPool::Choice& choice, const HttpRequest& request,
                                           std::string_view body, const HttpHeaders& more, Passing& passing) {
  using Outcome = DecoderPool::Outcome;
  StatusOr<IdleClients::Client> client = clients_.take(choice.url);
  if (!client.ok()) return Outcome::kBroken;  // the record's URL is none
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  HttpHeaders headers = forwarded_headers(request);
  headers.insert(headers.end(), more.begin(), more.end());
  const Status status = client->http->pass(method, target_of(client->prefix, request), headers, body, passing.sink());
  if (status.ok()) {
    if (passing.is_open) return Outcome::kAnswered;
    clients_.keep(choice.url, std::move(client->http));
    if (passing.is_refusal) passing.refusal = proxy_error_words(passing.response.body);
    const Outcome outcome = passing.is_refusal ? Outcome::kRefused : Outcome::kAnswered;
    passing.on_end(outcome);
    passing.is_stream ? passing.responder.finish() : passing.responder.respond(std::move(passing.response));
    return outcome;
  }
  if (passing.responder.is_gone()) return Outcome::kGivenUp;
  if (!passing.has_head) return passing.is_refusal ? Outcome::kRefused : Outcome::kBroken;
  ++num_failed_;
  if (passing.is_stream) {
    passing.responder.abandon();  // the client sees that the answer is not whole
  } else {
    passing.responder.respond(proxy_error(absl::UnavailableError("the decode instance broke off its answer")));
  }
  return Outcome::kBroken;
}

}  // namespace transept

// What a proxy does with a request that it holds, before it is forwarded.
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "net/http_chars.h"
#include "proxy/proxy_service.h"
#include "proxy/proxy_target.h"

namespace transept {
namespace {

constexpr Duration kDoubt = std::chrono::seconds(60);     // how long instances are not asked again to believe the proxy
constexpr Duration kWelcome = std::chrono::seconds(10);   // how long a client's right to come in is not asked for again
constexpr Duration kNoEncoder = std::chrono::seconds(1);  // how long encodes are not asked for, as none is there
constexpr size_t kMaxWelcome = 4096;
// Of a prompt, beside the body: as it is split, and as it is fetched.
constexpr size_t kCopies = 2;

// What a decode instance lets clients in by.
std::string credentials(const HttpRequest& request) {
  std::string text;
  for (const auto& [name, value] : request.headers) {
    for (const std::string_view one : {"Authorization", "Host", "Origin"}) {
      if (equals_ignoring_case(name, one)) text += str_cat(one, ": ", value, "\n");
    }
  }
  return text;
}

}  // namespace

// Empty: the request is not held.
std::vector<HeldPrompt> ProxyService::prompts_to_hold(const Work& work) {
  if (held_ == nullptr || options_.hold == Hold::kNever || hold_again_.load() > steady_now()) return {};
  StatusOr<std::vector<HeldPrompt>> prompts = split_prompts(work.request, options_.max_held_prompts);
  // The decode instance says what is wrong with it.
  if (!prompts.ok()) return {};
  if (options_.hold == Hold::kSeveral && prompts->size() < 2) return {};
  auto& body = *static_cast<Body*>(work.ticket.get());
  body.resize(work.request.body.size() * (1 + kCopies));
  if (num_body_bytes_ <= options_.max_bodies_bytes) return *std::move(prompts);
  body.resize(work.request.body.size());
  return {};
}

// What has come of the prompts is with the instance, or the request is to be forwarded as it came. Errors: the instance
// or the client has gone.
Status ProxyService::hold(const DecoderPool::Choice& choice, const Work& work, std::vector<HeldPrompt>& prompts,
                          InjectedInputs& injected) {
  if (prompts.empty()) return ok_status();
  Status status = is_welcome(choice, work.request) ? hold_in_room(choice, work, prompts, injected)
                                                   : absl::PermissionDeniedError("the client is not let in");
  if (absl::IsCancelled(status) || absl::IsAborted(status)) return status;
  ++(injected.empty() ? num_let_go_ : num_held_);
  if (status.ok()) return status;
  // For another try either: it would go the same way.
  prompts.clear();
  static_cast<Body*>(work.ticket.get())->resize(work.request.body.size());
  return ok_status();
}

// `injected` stays empty if nothing came, and room is taken until end_hold() otherwise.
Status ProxyService::hold_in_room(const DecoderPool::Choice& choice, const Work& work,
                                  const std::vector<HeldPrompt>& prompts, InjectedInputs& injected) {
  const int64_t wanted = num_positions(prompts);
  if (!pool_.begin_hold(choice.id, wanted)) return resource_exhausted("the decode instance has no room to hold it");
  const auto check = [&]() -> Status {
    if (work.responder->is_gone()) return absl::CancelledError("the client has gone");
    if (!pool_.is_well(choice.id, steady_now())) return absl::AbortedError("the decode instance has gone");
    return ok_status();
  };
  HeldInputs* const inputs = held_;
  HeldInputs::Result result = inputs->hold(prompts, {choice.id, choice.model, trace_of(work.request)}, check);
  const Status& status = result.status;
  if (absl::IsPermissionDenied(status)) doubt("an encode instance");
  if (absl::IsUnavailable(status)) hold_again_ = steady_now() + kNoEncoder;
  const bool has_some = std::ranges::any_of(result.injected, [](const auto& one) { return one.has_value(); });
  if (has_some && !absl::IsCancelled(status) && !absl::IsAborted(status)) {
    injected = std::move(result.injected);
  } else {
    pool_.end_hold(choice.id, wanted);
  }
  return status;
}

void ProxyService::doubt(const std::string& name) {
  hold_again_ = steady_now() + kDoubt;
  log_warning("requests are not held for a minute: ", name,
              " does not believe the proxy; --ec-secret-file differs, or one side has none");
}

// Whether the decode instance would take a request of this client: nothing is encoded for others.
bool ProxyService::is_welcome(const DecoderPool::Choice& choice, const HttpRequest& request) {
  const std::string who = credentials(request);
  {
    const MutexLock lock(mutex_);
    const auto known = welcome_.find(who);
    if (known != welcome_.end() && known->second > steady_now()) return true;
  }
  StatusOr<IdleClients::Client> client = clients_.take(choice.url);
  if (!client.ok()) return false;
  HttpHeaders headers = forwarded_headers(request);
  std::erase_if(headers, [](const auto& header) { return equals_ignoring_case(header.first, "Content-Type"); });
  const StatusOr<HttpClient::Reply> reply = client->http->get(client->prefix + "/v1/models", headers);
  if (!reply.ok()) return false;
  clients_.keep(choice.url, std::move(client->http));
  if (reply->status != 200) return false;
  const MutexLock lock(mutex_);
  if (welcome_.size() >= kMaxWelcome) welcome_.clear();
  welcome_[who] = steady_now() + kWelcome;
  return true;
}

}  // namespace transept

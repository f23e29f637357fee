#include "proxy/held_inputs.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "proxy/proxy_responses.h"

namespace transept {
namespace {

TicketOffers::Options offers_of(const HeldInputs::Options& options) {
  TicketOffers::Options offers = options.offers;
  offers.secret = options.secret;
  return offers;
}

}  // namespace

HeldInputs::HeldInputs(const Options& options, std::shared_ptr<Broker> broker)
    : options_(options),
      offers_(offers_of(options), std::move(broker),
              [this](const EcInput& input, const Status& why) { report(input, TicketReport(why)); }) {}

HeldInputs::Result HeldInputs::hold(const std::vector<HeldPrompt>& prompts, const Consumer& consumer,
                                    const std::function<Status()>& check) {
  const auto holding = std::make_shared<Holding>();
  const std::vector<EcInput> inputs = offer(prompts, consumer, holding);
  const Status status = wait(*holding, check);
  {
    const MutexLock lock(mutex_);
    for (const EcInput& input : inputs) held_.erase(input);
  }
  for (const EcInput& input : inputs) offers_.withdraw(input);
  return {status, std::move(holding->injected)};  // no one else has it any more
}

std::vector<EcInput> HeldInputs::offer(const std::vector<HeldPrompt>& prompts, const Consumer& consumer,
                                       const std::shared_ptr<Holding>& holding) {
  std::vector<EcInput> inputs;
  std::vector<Ticket> tickets;
  for (const HeldPrompt& prompt : prompts) {
    Json body = prompt.body;
    body.set("consumer", consumer.id.name);
    Held held{std::make_shared<const std::string>(body.dump()), holding, inputs.size()};
    Ticket ticket;
    ticket.key.request_id = str_cat(options_.self.name, ".", options_.self.incarnation, ".", num_names_++);
    ticket.model = consumer.model;
    ticket.num_positions = prompt.num_positions_hint;
    ticket.num_bytes = held.prompt->size();
    ticket.time_left = options_.max_wait;
    ticket.consumer = consumer.id;
    ticket.asker_url = options_.url;
    ticket.trace = consumer.trace;
    inputs.push_back(input_of(ticket.key));
    tickets.push_back(std::move(ticket));
    const MutexLock lock(mutex_);
    holding->injected.emplace_back();
    ++holding->num_missing;
    held_.emplace(inputs.back(), std::move(held));
  }
  for (Ticket& ticket : tickets) offers_.add(std::move(ticket));
  return inputs;
}

Status HeldInputs::wait(Holding& holding, const std::function<Status()>& check) {
  const TimePoint end = steady_now() + options_.max_wait;
  while (true) {
    RETURN_IF_ERROR(check());
    const TimePoint now = steady_now();
    const TimePoint next = std::min(end, now + options_.look);
    const MutexLock lock(mutex_);
    if (now >= std::min(end, holding.stalled_at)) {
      return absl::DeadlineExceededError("the inputs were not encoded in time");
    }
    while (holding.num_missing > 0 && holding.failure.ok()) {
      if (!holding.changed.wait_until(mutex_, next)) break;
    }
    RETURN_IF_ERROR(holding.failure);
    if (holding.num_missing == 0) return ok_status();
  }
}

// False: the input is not held.
bool HeldInputs::report(const EcInput& input, TicketReport told) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(input);
  if (found == held_.end()) return false;
  Holding& holding = *found->second.holding;
  if (auto* injected = std::get_if<InjectedInput>(&told)) {
    holding.injected[found->second.index] = std::move(*injected);
    --holding.num_missing;
    holding.stalled_at = steady_now() + options_.max_stall;
  } else if (holding.failure.ok()) {
    holding.failure = std::get<Status>(told);
    // Those two are what `check` says.
    if (absl::IsCancelled(holding.failure) || absl::IsAborted(holding.failure)) {
      holding.failure = absl::UnavailableError(holding.failure.message());
    }
  }
  holding.changed.notify_all();
  held_.erase(found);
  return true;
}

HttpResponse HeldInputs::answer(const HttpRequest& request) {
  const std::optional<EcInput> input = parse_inputs_path(request.path);
  if (!is_from_instance(options_.secret.get(), request)) {
    const Status stranger = absl::UnauthenticatedError(
        options_.secret == nullptr ? "this path is for instances on this machine; --ec-secret-file opens it to others"
                                   : "this path is for instances of the same --ec-secret-file");
    // Names are as hard to guess as a code: it is an encode instance, and will not be believed the next time either.
    if (input.has_value()) report(*input, TicketReport(absl::PermissionDeniedError(stranger.message())));
    return proxy_error(stranger);
  }
  const Status unknown = not_found("the input is not asked for");
  if (!input.has_value()) return proxy_error(unknown);
  if (request.method != "POST") {
    const std::shared_ptr<const std::string> prompt = find(*input);
    return prompt == nullptr ? proxy_error(unknown) : HttpResponse{.body = *prompt};
  }
  StatusOr<TicketReport> told = parse_report(request.body);
  if (!told.ok()) return proxy_error(told.status());
  if (const auto* injected = std::get_if<InjectedInput>(&*told); injected != nullptr && injected->input != *input) {
    return proxy_error(field_error("encoded", "encoded: is of another input than the path"));
  }
  if (!report(*input, *std::move(told))) return proxy_error(unknown);
  offers_.withdraw(*input);
  return {.body = "{}"};
}

std::shared_ptr<const std::string> HeldInputs::find(const EcInput& input) const {
  const MutexLock lock(mutex_);
  const auto found = held_.find(input);
  return found == held_.end() ? nullptr : found->second.prompt;
}

HttpHeaders HeldInputs::proof(std::string_view method, std::string_view target, std::string_view body) const {
  const EcSecret* secret = options_.secret.get();
  return {
      {std::string(kInstanceCodeHeader), secret == nullptr ? "none" : instance_code(*secret, method, target, body)}};
}

size_t HeldInputs::num_held() const {
  const MutexLock lock(mutex_);
  return held_.size();
}

}  // namespace transept

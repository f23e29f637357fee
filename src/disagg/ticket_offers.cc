#include "disagg/ticket_offers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/strings.h"

namespace transept {
TicketOffers::TicketOffers(const Options& options, std::shared_ptr<Broker> broker,
                           std::function<void(const EcInput& input, const Status& why)> fail)
    : options_(options),
      own_mark_(options.secret == nullptr ? "" : options.secret->mark()),
      broker_(std::move(broker)),
      tell_(std::move(fail)),
      thread_([this] { run(); }) {}

TicketOffers::~TicketOffers() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    while (!offered_.empty()) remove(offered_.begin());
    changed_.notify_all();
  }
  thread_.join();
}

void TicketOffers::add(Ticket ticket) {
  const TimePoint now = steady_now();
  const EcInput input = input_of(ticket.key);
  Offered offered{.ticket = std::move(ticket), .begin = now, .deadline = now};
  offered.deadline += offered.ticket.time_left;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = offered_.emplace(input, std::move(offered));
  CHECK(is_new, "asked for twice");
  offers_.move(input, entry->second.next_offer, now);
  changed_.notify_all();
}

void TicketOffers::withdraw(const EcInput& input) {
  const MutexLock lock(mutex_);
  const auto found = offered_.find(input);
  if (found == offered_.end()) return;
  remove(found);
  changed_.notify_all();
}

void TicketOffers::explain(const ModelFingerprint& other, std::string why) {
  const MutexLock lock(mutex_);
  explained_.emplace_back(other, std::move(why));
}

void TicketOffers::wait_once() {
  const MutexLock lock(mutex_);
  waits_once_ = true;
}

void TicketOffers::begin_drain() {
  const MutexLock lock(mutex_);
  if (!std::exchange(is_draining_, true)) hasten();  // whether the broker is away is found by offering
}

void TicketOffers::offer_again() {
  const MutexLock lock(mutex_);
  hasten();
}

void TicketOffers::hasten() {
  const TimePoint now = steady_now();
  for (auto& [input, offered] : offered_) offers_.move(input, offered.next_offer, now);
  changed_.notify_all();
}

int64_t TicketOffers::num_offered_again() const {
  const MutexLock lock(mutex_);
  return num_offered_again_;
}

// ---- Its thread

void TicketOffers::run() {
  std::vector<Offer> due;
  std::vector<EcInput> withdrawn;
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (!is_stopped_ && withdrawn_.empty() && offers_.next_time() > steady_now()) {
        if (offers_.next_time() == TimePoint::max()) {
          changed_.wait(mutex_);
        } else {
          changed_.wait_until(mutex_, offers_.next_time());
        }
      }
      withdrawn.clear();
      std::swap(withdrawn, withdrawn_);
      if (is_stopped_ && withdrawn.empty()) return;
      collect_due(steady_now(), due);
    }
    for (const EcInput& input : withdrawn) {
      // Tickets that a broker which is away does not hear of end by their time, and find no input here.
      if (!broker_->withdraw(input).ok()) break;
    }
    for (const Offer& one : due) offer(one, steady_now());
  }
}

// What is over is kept for a fetch that is under way, until it is withdrawn.
void TicketOffers::collect_due(TimePoint now, std::vector<Offer>& due) {
  due.clear();
  while (offers_.next_time() <= now) {
    const EcInput input = offers_.next();
    Offered& offered = offered_.at(input);
    offers_.move(input, offered.next_offer, TimePoint::max());
    if (offered.deadline <= now) continue;
    due.push_back({offered.ticket, offered.begin, offered.offered});
    due.back().ticket.time_left = due.back().ticket.time_offered = offered.deadline - now;
  }
}

void TicketOffers::offer(const Offer& offer, TimePoint now) {
  const EcInput input = input_of(offer.ticket.key);
  if (const Status may = check_wait(offer, now); !may.ok()) return fail(input, may);
  Ticket ticket = offer.ticket;
  ticket.model = queue_of(ticket.model, options_.secret.get());
  const Status offered = broker_->offer(ticket);
  if (absl::IsUnavailable(offered)) {
    broker_is_away(now);
    return offer_later(input, now + options_.retry);
  }
  if (offered.ok() && offer.offered != TimePoint::max()) {
    const MutexLock lock(mutex_);
    ++num_offered_again_;
  }
  if (offered.ok() || absl::IsAlreadyExists(offered)) return offer_later(input, now + options_.offer_again, true);
  fail(input, offered);
}

void TicketOffers::look_for_encoders(TimePoint now) {
  looked_at_ = now;
  const auto peers = broker_->peers();
  if (!peers.ok()) return broker_is_away(now);
  // Records may have run out while nobody could renew them.
  if (std::exchange(is_away_, false)) back_at_ = now;
  last_seen_.clear();
  for (const InstanceRecord& peer : *peers) {
    if (peer.role == InstanceRole::kDecode) continue;
    last_seen_.push_back({peer.model, explain_other_secret(peer, own_mark_)});
    if (!last_seen_.back().other_secret.empty()) continue;
    Known& known = known_[peer.model.bytes];
    (peer.is_draining ? known.drains_at : known.at) = now;
  }
}

void TicketOffers::broker_is_away(TimePoint now) {
  if (!std::exchange(is_away_, true)) away_since_ = now;
}

Status TicketOffers::check_away(TimePoint now) const {
  if (now - away_since_ < options_.wait_for_encoders) return ok_status();
  const MutexLock lock(mutex_);
  if (!is_draining_) return ok_status();
  return absl::UnavailableError(
      "this instance is ending, and the broker, which would find an encode instance, is away");
}

// Whether an encode instance of the model is known, or was a short time ago.
Status TicketOffers::check_wait(const Offer& offer, TimePoint now) {
  if (is_away_ || looked_at_ == TimePoint::min() || now - looked_at_ >= options_.look_for_encoders) {
    look_for_encoders(now);
    if (is_away_) return check_away(now);
  }
  const auto found = known_.find(offer.ticket.model.bytes);
  const Known known = found == known_.end() ? Known() : found->second;
  // One that drains takes nothing, and finishes what it took before.
  const bool may_be_taken = known.at != TimePoint::min() && offer.offered <= known.at + options_.look_for_encoders;
  const TimePoint known_at = may_be_taken ? std::max(known.at, known.drains_at) : known.at;
  if (now - std::max({begin_of_wait(offer), known_at, back_at_}) < options_.wait_for_encoders) return ok_status();
  return why_not(offer.ticket.model);
}

TimePoint TicketOffers::begin_of_wait(const Offer& offer) {
  if (!first_begin_.has_value()) first_begin_ = offer.begin;
  const MutexLock lock(mutex_);
  return waits_once_ ? *first_begin_ : offer.begin;
}

Status TicketOffers::why_not(const ModelFingerprint& model) const {
  const auto stranger = std::ranges::find_if(
      last_seen_, [&](const Seen& one) { return one.model == model && !one.other_secret.empty(); });
  if (stranger != last_seen_.end()) {
    return absl::PermissionDeniedError(str_cat("no encode instance of this fleet is there: ", stranger->other_secret));
  }
  const auto other =
      std::find_if(last_seen_.rbegin(), last_seen_.rend(), [&](const Seen& one) { return one.model != model; });
  if (other == last_seen_.rend()) return absl::UnavailableError("no encode instance is there");
  const MutexLock lock(mutex_);
  const auto explained = std::ranges::find(explained_, other->model, [](const auto& each) { return each.first; });
  return absl::UnavailableError(
      str_cat("no encode instance of this model is there: ",
              explained != explained_.end()
                  ? explained->second
                  : "those that are have another checkpoint, --dtype, --quantization, --ec-transfer-dtype "
                    "or version"));
}

void TicketOffers::fail(const EcInput& input, const Status& why) {
  {
    const MutexLock lock(mutex_);
    const auto found = offered_.find(input);
    if (found == offered_.end()) return;
    remove(found);
    changed_.notify_all();
  }
  tell_(input, why);
}

void TicketOffers::offer_later(const EcInput& input, TimePoint at, bool is_offered) {
  const MutexLock lock(mutex_);
  const auto found = offered_.find(input);
  if (found == offered_.end()) return;
  if (is_offered) found->second.offered = std::min(found->second.offered, steady_now());
  offers_.move(input, found->second.next_offer, at);
}

void TicketOffers::remove(std::map<EcInput, Offered>::iterator offered) {
  offers_.move(offered->first, offered->second.next_offer, TimePoint::max());
  withdrawn_.push_back(offered->first);
  offered_.erase(offered);
}

}  // namespace transept

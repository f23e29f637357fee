#include "disagg/ticket_asker.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

TimePoint steady_now() { return std::chrono::steady_clock::now(); }

}  // namespace

uint64_t num_input_bytes(const EncoderItem& item) {
  const size_t num_values = item.features == nullptr ? 0 : item.features->values.size() + item.features->extras.size();
  return (item.token_ids.size() + num_values) * sizeof(float);
}

TicketAsker::TicketAsker(const Options& options, std::shared_ptr<Broker> broker)
    : options_(options), broker_(std::move(broker)), thread_([this] { run(); }) {}

TicketAsker::~TicketAsker() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    while (!asked_.empty()) remove(asked_.begin());
    changed_.notify_all();
  }
  thread_.join();
}

void TicketAsker::explain(const ModelFingerprint& other, std::string why) {
  const MutexLock lock(mutex_);
  explained_ = {other, std::move(why)};
}

void TicketAsker::wait_once() {
  const MutexLock lock(mutex_);
  waits_once_ = true;
}

void TicketAsker::start(std::shared_ptr<EcInbox> inbox) {
  const MutexLock lock(mutex_);
  inbox_ = std::move(inbox);
}

void TicketAsker::ask(EncodeAsk ask) {
  const TimePoint now = steady_now();
  const EcInput input = ask.input;
  Asked asked{.ask = std::move(ask), .begin = now, .deadline = now};
  asked.deadline += asked.ask.time_left;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = asked_.emplace(input, std::move(asked));
  CHECK(is_new, "asked for twice");
  offers_.move(input, entry->second.next_offer, now);
  changed_.notify_all();
}

void TicketAsker::withdraw(const EcInput& input) {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(input);
  if (found == asked_.end()) return;
  remove(found);
  changed_.notify_all();
}

std::shared_ptr<const EncoderItem> TicketAsker::find(const EcInput& input) const {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(input);
  return found == asked_.end() ? nullptr : found->second.ask.content;
}

bool TicketAsker::refuse(const EcInput& input, const Status& why) {
  if (find(input) == nullptr) return false;
  // Of fleets whose instances do not fit together, not of the request: a client may try again, and a fallback helps.
  const bool is_of_fleet = absl::IsFailedPrecondition(why);
  fail(input, is_of_fleet ? absl::UnavailableError(error_message(why)) : why);
  return true;
}

size_t TicketAsker::num_asked() const {
  const MutexLock lock(mutex_);
  return asked_.size();
}

int64_t TicketAsker::num_offered_again() const {
  const MutexLock lock(mutex_);
  return num_offered_again_;
}

LastError TicketAsker::last_error() const {
  const MutexLock lock(mutex_);
  return last_error_;
}

// ---- Its thread

void TicketAsker::run() {
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

// What is over is kept for a fetch that is under way, until the engine withdraws it.
void TicketAsker::collect_due(TimePoint now, std::vector<Offer>& due) {
  due.clear();
  while (offers_.next_time() <= now) {
    const EcInput input = offers_.next();
    Asked& asked = asked_.at(input);
    offers_.move(input, asked.next_offer, TimePoint::max());
    if (asked.deadline <= now) continue;
    Offer offer{.begin = asked.begin, .offered = asked.offered};
    offer.ticket.key = {input.request_id, input.input_id, 0};
    offer.ticket.digest = asked.ask.digest;
    offer.ticket.model = asked.ask.model;
    offer.ticket.num_positions = asked.ask.num_positions;
    offer.ticket.num_bytes = num_input_bytes(*asked.ask.content);
    offer.ticket.time_left = asked.deadline - now;
    offer.ticket.consumer = options_.self;
    offer.ticket.asker_url = options_.url;
    offer.ticket.time_offered = offer.ticket.time_left;
    offer.ticket.trace = asked.ask.trace;
    due.push_back(std::move(offer));
  }
}

void TicketAsker::offer(const Offer& offer, TimePoint now) {
  const EcInput input = input_of(offer.ticket.key);
  if (const Status may = check_wait(offer, now); !may.ok()) return fail(input, may);
  const Status offered = broker_->offer(offer.ticket);
  if (absl::IsUnavailable(offered)) {
    is_away_ = true;
    return offer_later(input, now + options_.retry);
  }
  if (offered.ok() && offer.offered != TimePoint::max()) {
    const MutexLock lock(mutex_);
    ++num_offered_again_;
  }
  if (offered.ok() || absl::IsAlreadyExists(offered)) return offer_later(input, now + options_.offer_again, true);
  fail(input, offered);
}

// Whether an encode instance of the model is known, or was a short time ago. All that is asked for is of one model.
Status TicketAsker::check_wait(const Offer& offer, TimePoint now) {
  if (is_away_ || looked_at_ == TimePoint::min() || now - looked_at_ >= options_.look_for_encoders) {
    looked_at_ = now;
    const auto peers = broker_->peers();
    is_away_ = is_away_ || !peers.ok();
    if (!peers.ok()) return ok_status();  // offering says so, too
    // Records may have run out while nobody could renew them.
    if (std::exchange(is_away_, false)) back_at_ = now;
    others_.reset();
    for (const InstanceRecord& peer : *peers) {
      if (peer.role == InstanceRole::kDecode) continue;
      if (peer.model == offer.ticket.model) {
        (peer.is_draining ? drains_at_ : known_at_) = now;
      } else {
        others_ = peer.model;
      }
    }
  }
  // One that drains takes nothing, and finishes what it took before.
  const bool may_be_taken = known_at_ != TimePoint::min() && offer.offered <= known_at_ + options_.look_for_encoders;
  const TimePoint known = may_be_taken ? std::max(known_at_, drains_at_) : known_at_;
  if (now - std::max({begin_of_wait(offer), known, back_at_}) < options_.wait_for_encoders) return ok_status();
  if (!others_.has_value()) return absl::UnavailableError("no encode instance is there");
  return absl::UnavailableError(str_cat("no encode instance of this model is there: ", why_others(*others_)));
}

TimePoint TicketAsker::begin_of_wait(const Offer& offer) {
  if (!first_begin_.has_value()) first_begin_ = offer.begin;
  const MutexLock lock(mutex_);
  return waits_once_ ? *first_begin_ : offer.begin;
}

std::string TicketAsker::why_others(const ModelFingerprint& model) const {
  const MutexLock lock(mutex_);
  if (!explained_.second.empty() && explained_.first == model) return explained_.second;
  return "those that are have another checkpoint, --dtype, --quantization, --ec-transfer-dtype or version";
}

void TicketAsker::fail(const EcInput& input, const Status& why) {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(input);
  if (found == asked_.end()) return;
  last_error_ = {error_message(why), steady_now()};
  remove(found);
  changed_.notify_all();
  if (inbox_ != nullptr) inbox_->put(EcAskFailed{input, why});
}

void TicketAsker::offer_later(const EcInput& input, TimePoint at, bool is_offered) {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(input);
  if (found == asked_.end()) return;
  if (is_offered) found->second.offered = std::min(found->second.offered, steady_now());
  offers_.move(input, found->second.next_offer, at);
}

void TicketAsker::remove(std::map<EcInput, Asked>::iterator asked) {
  offers_.move(asked->first, asked->second.next_offer, TimePoint::max());
  withdrawn_.push_back(asked->first);
  asked_.erase(asked);
}

}  // namespace transept

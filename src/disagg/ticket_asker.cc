#include "disagg/ticket_asker.h"

#include <utility>

namespace transept {
namespace {

// Instances that do not fit together are no fault of the request: a client may try again, and a fallback helps.
Status of_fleet(const Status& why) {
  const bool is_of_fleet = absl::IsFailedPrecondition(why) || absl::IsPermissionDenied(why);
  return is_of_fleet ? absl::UnavailableError(error_message(why)) : why;
}

}  // namespace

uint64_t num_input_bytes(const EncoderItem& item) {
  const size_t num_values = item.features == nullptr ? 0 : item.features->values.size() + item.features->extras.size();
  return (item.token_ids.size() + num_values) * sizeof(float);
}

TicketAsker::TicketAsker(const Options& options, std::shared_ptr<Broker> broker)
    : options_(options), offers_(options, std::move(broker), [this](const EcInput& input, const Status& why) {
        fail(input, of_fleet(why));
      }) {}

void TicketAsker::start(std::shared_ptr<EcInbox> inbox) {
  const MutexLock lock(mutex_);
  inbox_ = std::move(inbox);
}

void TicketAsker::ask(EncodeAsk ask) {
  Ticket ticket;
  ticket.key = {ask.input.request_id, ask.input.input_id, 0};
  ticket.digest = ask.digest;
  ticket.model = ask.model;
  ticket.num_positions = ask.num_positions;
  ticket.num_bytes = num_input_bytes(*ask.content);
  ticket.time_left = ask.time_left;
  ticket.consumer = options_.self;
  ticket.asker_url = options_.url;
  ticket.trace = ask.trace;
  {
    const MutexLock lock(mutex_);
    asked_[ask.input] = std::move(ask.content);
  }
  offers_.add(std::move(ticket));
}

void TicketAsker::withdraw(const EcInput& input) {
  if (forget(input)) offers_.withdraw(input);
}

std::shared_ptr<const EncoderItem> TicketAsker::find(const EcInput& input) const {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(input);
  return found == asked_.end() ? nullptr : found->second;
}

bool TicketAsker::refuse(const EcInput& input, const Status& why) {
  if (!fail(input, of_fleet(why))) return false;
  offers_.withdraw(input);
  return true;
}

size_t TicketAsker::num_asked() const {
  const MutexLock lock(mutex_);
  return asked_.size();
}

LastError TicketAsker::last_error() const {
  const MutexLock lock(mutex_);
  return last_error_;
}

bool TicketAsker::forget(const EcInput& input) {
  const MutexLock lock(mutex_);
  return asked_.erase(input) > 0;
}

// False: it is not asked for.
bool TicketAsker::fail(const EcInput& input, const Status& why) {
  const MutexLock lock(mutex_);
  if (asked_.erase(input) == 0) return false;
  last_error_ = {error_message(why), std::chrono::steady_clock::now()};
  if (inbox_ != nullptr) inbox_->put(EcAskFailed{input, why});
  return true;
}

}  // namespace transept

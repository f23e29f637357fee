#include "disagg/ticket_queue.h"

namespace transept {

Status TicketQueue::offer(const Ticket& ticket, TimePoint now) {
  RETURN_IF_ERROR(check_ec_name("request_id", ticket.key.request_id));
  RETURN_IF_ERROR(check_ec_name("consumer", ticket.consumer.name));
  drop_late(now);
  if (ticket.time_left <= Duration::zero()) return ok_status();  // its time is over: dropped, as any such ticket
  const EcInput input = input_of(ticket.key);
  if (entries_.contains(input)) {
    return absl::AlreadyExistsError(
        str_cat("input ", input.input_id, " of request ", input.request_id, " is offered already"));
  }
  if (entries_.size() >= max_tickets_) {
    return resource_exhausted(entries_.size(), " encodes are asked for; at most ", max_tickets_, " may be");
  }
  Entry& entry = entries_[input];
  entry.ticket = ticket;
  entry.place = ++num_offered_;
  waiting_.emplace(entry.place, input);
  const bool ends = ticket.time_left < TimePoint::max() - now;
  deadlines_.move(input, entry.deadline, ends ? now + ticket.time_left : TimePoint::max());
  return ok_status();
}

std::optional<Ticket> TicketQueue::take(const InstanceId& self, TimePoint now) {
  drop_late(now);
  EcInput input;
  if (idle_.next_time() <= now) {
    input = idle_.next();
    Entry& entry = entries_.at(input);
    ++entry.ticket.key.attempt;
  } else if (!waiting_.empty()) {
    input = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
  } else {
    return std::nullopt;
  }
  Entry& entry = entries_.at(input);
  entry.place = 0;
  entry.taker = self;
  idle_.move(input, entry.idle_at, now + Broker::kTicketIdle);
  Ticket ticket = entry.ticket;
  if (entry.deadline != TimePoint::max()) ticket.time_left = entry.deadline - now;
  return ticket;
}

StatusOr<TicketQueue::Entry*> TicketQueue::find_taken(const InstanceId& self, const EcKey& key, TimePoint now) {
  drop_late(now);
  const auto found = entries_.find(input_of(key));
  const bool is_theirs = found != entries_.end() && found->second.place == 0 && found->second.taker == self &&
                         found->second.ticket.key == key;
  if (is_theirs) return &found->second;
  return not_found("input ", key.input_id, " of request ", key.request_id, ", attempt ", key.attempt,
                   ": the ticket is over, or another instance has it");
}

Status TicketQueue::renew(const InstanceId& self, const EcKey& key, TimePoint now) {
  ASSIGN_OR_RETURN(Entry* const entry, find_taken(self, key, now));
  idle_.move(input_of(key), entry->idle_at, now + Broker::kTicketIdle);
  return ok_status();
}

Status TicketQueue::done(const InstanceId& self, const EcKey& key, TimePoint now) {
  RETURN_IF_ERROR(find_taken(self, key, now).status());
  remove(input_of(key));
  return ok_status();
}

int64_t TicketQueue::num_waiting(TimePoint now) {
  drop_late(now);
  return static_cast<int64_t>(waiting_.size());
}

void TicketQueue::drop_late(TimePoint now) {
  while (deadlines_.next_time() <= now) remove(EcInput(deadlines_.next()));
}

void TicketQueue::remove(const EcInput& input) {
  const auto found = entries_.find(input);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  deadlines_.move(input, entry.deadline, TimePoint::max());
  idle_.move(input, entry.idle_at, TimePoint::max());
  if (entry.place != 0) waiting_.erase(entry.place);
  entries_.erase(found);
}

}  // namespace transept

#include "disagg/ticket_queue.h"

#include <iterator>

namespace transept {

Status TicketQueue::offer(const Ticket& ticket, TimePoint now) {
  RETURN_IF_ERROR(check_ec_name("request_id", ticket.key.request_id));
  RETURN_IF_ERROR(check_ec_name("consumer", ticket.consumer.name));
  RETURN_IF_ERROR(check_trace(ticket.trace));
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
  Line& line = lines_[ticket.model.bytes];
  line.waiting.emplace(entry.place, input);
  ++line.num_tickets;
  const bool ends = ticket.time_left < TimePoint::max() - now;
  deadlines_.move(input, entry.deadline, ends ? now + ticket.time_left : TimePoint::max());
  return ok_status();
}

std::optional<Ticket> TicketQueue::take(const InstanceId& self, const ModelFingerprint& model, TimePoint now) {
  drop_late(now);
  const auto found = lines_.find(model.bytes);
  if (found == lines_.end()) return std::nullopt;
  Line& line = found->second;
  EcInput input;
  if (line.idle.next_time() <= now) {
    input = line.idle.next();
    Entry& entry = entries_.at(input);
    ++entry.ticket.key.attempt;
  } else if (!line.waiting.empty()) {
    input = line.waiting.begin()->second;
    line.waiting.erase(line.waiting.begin());
  } else {
    return std::nullopt;
  }
  Entry& entry = entries_.at(input);
  entry.place = 0;
  entry.taker = self;
  line.idle.move(input, entry.idle_at, now + Broker::kTicketIdle);
  Ticket ticket = entry.ticket;
  if (entry.deadline != TimePoint::max()) ticket.time_left = entry.deadline - now;
  return ticket;
}

TimePoint TicketQueue::next_time(const ModelFingerprint& model) const {
  const auto found = lines_.find(model.bytes);
  return found == lines_.end() ? TimePoint::max() : found->second.idle.next_time();
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
  lines_.at(entry->ticket.model.bytes).idle.move(input_of(key), entry->idle_at, now + Broker::kTicketIdle);
  return ok_status();
}

Status TicketQueue::done(const InstanceId& self, const EcKey& key, TimePoint now) {
  RETURN_IF_ERROR(find_taken(self, key, now).status());
  remove(input_of(key));
  return ok_status();
}

int64_t TicketQueue::num_waiting(TimePoint now) {
  drop_late(now);
  int64_t count = 0;
  for (const auto& [model, line] : lines_) count += std::ssize(line.waiting);
  return count;
}

void TicketQueue::drop_late(TimePoint now) {
  while (deadlines_.next_time() <= now) remove(EcInput(deadlines_.next()));
}

void TicketQueue::remove(const EcInput& input) {
  const auto found = entries_.find(input);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  deadlines_.move(input, entry.deadline, TimePoint::max());
  const auto line = lines_.find(entry.ticket.model.bytes);
  line->second.idle.move(input, entry.idle_at, TimePoint::max());
  if (entry.place != 0) line->second.waiting.erase(entry.place);
  if (--line->second.num_tickets == 0) lines_.erase(line);
  entries_.erase(found);
}

}  // namespace transept

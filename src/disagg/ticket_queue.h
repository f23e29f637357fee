// The tickets of a broker (encoder_cache/broker.h): in order of their offers, each with at most one taker. A value:
// time goes in. Owned by a broker's hub or server; used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "encoder_cache/broker.h"
#include "encoder_cache/ec_timers.h"

namespace transept {

class TicketQueue final {
 public:
  // Tickets that wait and that are taken count.
  explicit TicketQueue(size_t max_tickets) : max_tickets_(max_tickets) {}

  // As the functions of Broker.
  Status offer(const Ticket& ticket, TimePoint now);
  std::optional<Ticket> take(const InstanceId& self, TimePoint now);
  Status renew(const InstanceId& self, const EcKey& key, TimePoint now);
  Status done(const InstanceId& self, const EcKey& key, TimePoint now);
  void withdraw(const EcInput& input) { remove(input); }
  int64_t num_waiting(TimePoint now);

  // When the next taken ticket becomes idle, so that take() has it; TimePoint::max(): none is taken.
  TimePoint next_time() const { return idle_.next_time(); }

 private:
  struct Entry {
    Ticket ticket;
    TimePoint deadline = TimePoint::max();  // timers, in deadlines_ and idle_
    TimePoint idle_at = TimePoint::max();
    uint64_t place = 0;  // in waiting_; 0: it is taken
    InstanceId taker;
  };

  void drop_late(TimePoint now);
  void remove(const EcInput& input);
  // Errors: kNotFound.
  StatusOr<Entry*> find_taken(const InstanceId& self, const EcKey& key, TimePoint now);

  size_t max_tickets_;
  uint64_t num_offered_ = 0;
  std::map<EcInput, Entry> entries_;  // entries do not move
  std::map<uint64_t, EcInput> waiting_;
  EcTimers deadlines_, idle_;
};

}  // namespace transept
